from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from quintain.inference.products import THIN, ThinLinear, by_columns, lay_by_columns, product


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("rows", [1, 3, THIN, THIN + 1])
@pytest.mark.parametrize("bias", [None, torch.randn(5)])
def test_a_product_is_the_sum_over_the_inputs_in_either_layout(
    columns: bool, rows: int, bias: torch.Tensor | None
) -> None:
    x, weight = torch.randn(rows, 7), torch.randn(5, 7)
    expected = (x.double()[:, None] * weight.double()).sum(-1) + (0 if bias is None else bias.double())
    laid = weight.t().contiguous().t() if columns else weight
    assert by_columns(laid) == columns
    torch.testing.assert_close(product(x, laid, bias).double(), expected, rtol=1e-5, atol=1e-5)


def test_a_thin_linear_layer_keeps_the_leading_dimensions() -> None:
    layer = ThinLinear(7, 5)
    x = torch.randn(2, 3, 7)
    torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))


@pytest.mark.parametrize("tied", [False, True])
def test_laying_weights_by_columns_changes_neither_values_nor_what_is_saved(tmp_path, tied: bool) -> None:
    config = LlamaConfig(
        vocab_size=20,
        hidden_size=8,
        intermediate_size=12,
        num_hidden_layers=1,
        num_attention_heads=2,
        tie_word_embeddings=tied,
    )
    model = LlamaForCausalLM(config)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    lay_by_columns(model)
    assert by_columns(model.model.layers[0].mlp.up_proj.weight)
    assert by_columns(model.lm_head.weight) != tied
    assert not by_columns(model.get_input_embeddings().weight)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    model.save_pretrained(tmp_path)
    for name, value in load_file(tmp_path / "model.safetensors").items():
        assert torch.equal(value, before[name])
