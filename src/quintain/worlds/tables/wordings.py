"""How tasks about tables are asked for, in English and Chinese. Tables and columns are called as they are."""

from __future__ import annotations

from dataclasses import dataclass

from quintain.worlds.drawing import Language


@dataclass(frozen=True, slots=True)
class Wording:
    """Sentences of one language; `{entry}` stands for what `named`, `far` or `every` make.

    Attributes:
        named: a row, by the value of a column.
        far: the row that a reference of a row leads to.
        every: all rows that refer to a row.
        read: asks for a value.
        hop: asks for a value across a reference.
        count: asks how many rows refer to one.
        missing: says that a row does not exist.
        change: wants a value set.
        remove: wants a row removed.
        add: wants a row that refers to another, `{told}` being `with_values` or nothing.
        with_values: the values of a new row, `{listed}` being `value`s.
        value: a column and its value.
        between: stands between values.
        several: wants several things done.
    """

    named: str
    far: str
    every: str
    read: str
    hop: str
    count: str
    missing: str
    change: str
    remove: str
    add: str
    with_values: str
    value: str
    between: str
    several: str


WORDINGS: dict[Language, Wording] = {
    "en": Wording(
        named="the {table} entry whose {column} is {value}",
        far="the {table} entry that the {column} of {entry} refers to",
        every="every {table} entry whose {column} refers to {entry}",
        read="What is the {column} of {entry}?",
        hop="Take {entry}. What is the {told} of the {table} entry that its {column} refers to?",
        count="How many {table} entries have a {column} that refers to {entry}?",
        missing="Cannot answer: there is no {table} entry whose {column} is {value}.",
        change="Set the {column} of {entry} to {value}.",
        remove="Remove {entry}.",
        add="Add a {table} entry whose {column} refers to {entry}{told}.",
        with_values=", with {listed}",
        value="{column} {value}",
        between=", ",
        several="Do all of this. {listed}",
    ),
    "zh": Wording(
        named=" {table} 中 {column} 为 {value} 的记录",
        far="{entry}的 {column} 所指向的 {table} 记录",
        every=" {table} 中 {column} 指向{entry}的每条记录",
        read="请问{entry}的 {column} 是什么？",
        hop="请看{entry}，其 {column} 指向 {table} 中的一条记录。那条记录的 {told} 是什么？",
        count="请问 {table} 中有多少条记录的 {column} 指向{entry}？",
        missing="无法回答：{table} 中没有 {column} 为 {value} 的记录。",
        change="请把{entry}的 {column} 改为 {value}。",
        remove="请删除{entry}。",
        add="请在 {table} 中添加一条记录，其 {column} 指向{entry}{told}。",
        with_values="，并且 {listed}",
        value="{column} 为 {value}",
        between="，",
        several="请完成以下各项。{listed}",
    ),
}
