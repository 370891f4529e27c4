"""Tools and toolsets: one specification for data generation, parsing and evaluation.

A tool has a name, a description and JSON Schemas of its parameters and of its result. It is made from a
typed function or method with `@tool` (the docstring gives the descriptions, pydantic the schemas) or from
a schema. Arguments and results are both validated, by `jsonschema` (draft 2020-12).
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeVar, overload

import docstring_parser
import jsonschema
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from quintain.interface.canonical import digest
from quintain.interface.errors import FormatError, InputError

_MARK = "__quintain_tool__"

F = TypeVar("F", bound=Callable[..., Any])


_Validator = jsonschema.Draft202012Validator

_VALUES = frozenset({"const", "default", "enum", "examples"})
"""Keywords of a schema that hold JSON and no schema."""


def _compile(name: str, schema: dict[str, Any]) -> _Validator:
    try:
        return _compiled(json.dumps(schema))
    except jsonschema.exceptions.SchemaError as error:
        raise InputError(f"tool {name!r}: not a JSON Schema: {error.message}") from None
    except TypeError as error:
        raise InputError(f"tool {name!r}: its schema is no JSON: {error}") from None
    except Unresolvable as error:
        raise InputError(f"tool {name!r}: $ref {error.ref!r} leads nowhere in its schema") from None


@lru_cache(maxsize=1024)  # checking a schema takes milliseconds, and tools that come with tasks come again and again
def _compiled(text: str) -> _Validator:
    schema = json.loads(text)
    _Validator.check_schema(schema)
    registry: Registry[Any] = Registry().with_resource("", DRAFT202012.create_resource(schema))
    for reference in _references(schema):
        try:
            registry.resolver().lookup(reference)
        except Unresolvable:
            raise Unresolvable(ref=reference) from None  # whole: a pointer's error names only a part
    return _Validator(schema, registry=registry)  # a registry of its own never asks the network


def _references(schema: Any) -> Iterator[str]:
    """Every `$ref` of a schema, but for those inside of values and of parts with a base address of their own."""
    if isinstance(schema, list):
        for one in schema:
            yield from _references(one)
    elif isinstance(schema, dict) and "$id" not in schema:
        for key, one in schema.items():
            if key == "$ref" and isinstance(one, str):
                yield one
            elif key not in _VALUES:
                yield from _references(one)


class ResultError(Exception):
    """A tool's result is no JSON or does not fit its schema."""


@dataclass(frozen=True)
class Tool:
    """One tool.

    Attributes:
        name: unique in its toolset.
        description: what it does, for the agent.
        parameters: JSON Schema of the arguments (an object).
        result: JSON Schema of the result; None if none was declared.
        read_only: calls change nothing, so several may run at once.
        function: called with the arguments as keywords; None for a tool known by its schema alone.
        arguments_model: turns validated JSON arguments into the function's Python types.
        result_type: turns the function's result into JSON.

    Raises:
        InputError: a schema is not a valid JSON Schema.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    result: dict[str, Any] | None = None
    read_only: bool = False
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    arguments_model: type[BaseModel] | None = field(default=None, compare=False, repr=False)
    result_type: TypeAdapter[Any] | None = field(default=None, compare=False, repr=False)
    _validators: tuple[_Validator, _Validator | None] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self._validators is None:
            made = (_compile(self.name, self.parameters), _compile(self.name, self.result) if self.result else None)
            object.__setattr__(self, "_validators", made)

    def bind(self, function: Callable[..., Any] | None) -> Tool:
        """The same tool (and the same compiled schemas) with another function behind it."""
        return replace(self, function=function)

    def spec(self) -> dict[str, Any]:
        """What the digest covers and `tools.lock` stores."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "result": self.result,
        }

    def check_arguments(self, arguments: Any) -> FormatError | None:
        """What is wrong with the arguments of a call, in one line; None if nothing is."""
        error = jsonschema.exceptions.best_match(self._schema_of(0).iter_errors(arguments))
        if error is None:
            return None
        return FormatError("arguments", f"{self.name}: {_explain(error)}. Expected {self.signature()}")

    def keywords(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Validated JSON arguments as the function's Python values.

        Raises:
            ValueError: a value passes the schema and still does not convert (for example an impossible date).
        """
        if self.arguments_model is None:
            return arguments
        model = self.arguments_model.model_validate(arguments)
        return {name: getattr(model, name) for name in self.arguments_model.model_fields}

    def to_json(self, value: Any) -> Any:
        """A result as validated JSON.

        Raises:
            ResultError: it is no JSON, or does not fit the declared type or schema.
        """
        if self.result_type is not None:
            try:
                checked = self.result_type.validate_python(value, strict=True)
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(str(part) for part in first["loc"]) or "result"
                raise ResultError(f"{self.name} returned {type(value).__name__}; {place}: {first['msg']}") from None
        try:
            if self.result_type is not None:
                value = self.result_type.dump_python(checked, mode="json")
            value = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ResultError(f"{self.name} returned {type(value).__name__}, which is no JSON: {error}") from None
        if self.result:
            problem = jsonschema.exceptions.best_match(self._schema_of(1).iter_errors(value))
            if problem is not None:
                raise ResultError(f"{self.name} returned a wrong result: {_explain(problem)}")
        return value

    def _schema_of(self, which: Literal[0, 1]) -> _Validator:
        assert self._validators is not None
        validator = self._validators[which]
        assert validator is not None
        return validator

    def signature(self) -> str:
        """A short form for prompts and error messages, `search(query: string, limit?: integer)`."""
        required = set(self.parameters.get("required", ()))
        parts = [
            f"{name}{'' if name in required else '?'}: {_type_name(schema)}"
            for name, schema in self.parameters.get("properties", {}).items()
        ]
        return f"{self.name}({', '.join(parts)})"


def _type_name(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"[{_type_name(schema.get('items', {}))}]"
    return "|".join(kind) if isinstance(kind, list) else str(kind)


def _explain(error: jsonschema.exceptions.ValidationError) -> str:
    place = ".".join(str(part) for part in error.absolute_path)
    message = error.message if len(error.message) <= 200 else error.message[:197] + "..."
    return f"{place}: {message}" if place else message


class Toolset:
    """An ordered set of tools with a digest.

    Raises:
        InputError: two tools share a name.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for one in tools:
            if one.name in self._tools:
                raise InputError(f"two tools are named {one.name!r}")
            self._tools[one.name] = one

    @classmethod
    def of(cls, *sources: Any) -> Toolset:
        """Tools of `@tool` functions, `Tool` objects and the `@tool` methods of an instance or class."""
        found: list[Tool] = []
        for source in sources:
            if isinstance(source, Tool):
                found.append(source)
            elif hasattr(source, _MARK):
                found.append(getattr(source, _MARK).bind(source))
            else:
                found.extend(_methods(source))
        return cls(found)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    @property
    def names(self) -> list[str]:
        """Names in order."""
        return list(self._tools)

    def specs(self) -> list[dict[str, Any]]:
        """Specifications sorted by name: the order of definition is no part of the interface."""
        return [self._tools[name].spec() for name in sorted(self._tools)]

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON of all specifications."""
        return digest(self.specs())

    def check(self, name: str, arguments: Any) -> FormatError | None:
        """What is wrong with a call; None if nothing is."""
        if name not in self._tools:
            return FormatError("unknown_tool", f"no tool named {name!r}; tools: {', '.join(self._tools) or 'none'}")
        return self._tools[name].check_arguments(arguments)


def _methods(source: Any) -> Iterator[Tool]:
    """`@tool` methods in the order of definition, base classes first."""
    owner = source if inspect.isclass(source) else type(source)
    names = dict.fromkeys(name for base in reversed(owner.__mro__) for name in vars(base))
    for name in names:
        spec = getattr(getattr(owner, name), _MARK, None)
        if spec is not None:
            yield spec.bind(None if inspect.isclass(source) else getattr(source, name))


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(*, name: str | None = None, read_only: bool = False) -> Callable[[F], F]: ...
def tool(function: Any = None, /, *, name: str | None = None, read_only: bool = False) -> Any:
    """Marks a typed function or method as a tool.

    The docstring (Google, NumPy or reST style) gives the descriptions, the annotations give the schemas.

    Args:
        function: the function.
        name: another name for the agent.
        read_only: calls change nothing; the calls of a turn run at once if all of them are.

    Raises:
        InputError: a parameter has no annotation, or one that has no JSON Schema.
    """

    def mark(target: Any) -> Any:
        setattr(target, _MARK, _spec_of(target, name or target.__name__, read_only))
        return target

    return mark if function is None else mark(function)


def _spec_of(function: Callable[..., Any], name: str, read_only: bool) -> Tool:
    documentation = docstring_parser.parse(inspect.getdoc(function) or "")
    described = {item.arg_name: _one_line(item.description) for item in documentation.params}
    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.name not in hints:
            raise InputError(f"tool {name!r}: parameter {parameter.name!r} needs a type annotation")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        parameters = _tidy(model.model_json_schema())
        result_type = TypeAdapter(hints["return"]) if "return" in hints else None
        result = _tidy(result_type.json_schema(mode="serialization")) if result_type else None
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise InputError(f"tool {name!r}: {str(error).splitlines()[0]}") from None
    for parameter_name, schema in parameters.get("properties", {}).items():
        if described.get(parameter_name):
            schema["description"] = described[parameter_name]
    description = _one_line(documentation.description)
    return Tool(name, description, parameters, result or None, read_only, function, model, result_type)


def _tidy(schema: Any, properties: bool = False) -> Any:
    """The schema without pydantic's generated titles (a *property* named `title` stays)."""
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _tidy(value, properties=key in ("properties", "$defs"))
        for key, value in schema.items()
        if properties or key != "title" or not isinstance(value, str)
    }


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())
