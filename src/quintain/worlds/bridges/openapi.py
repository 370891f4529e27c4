"""The operations of an HTTP API as a world's tools, read from its OpenAPI description (versions 3.0 and 3.1)."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import quote, urlencode

from pydantic import ValidationError

from quintain.interface.canonical import digest
from quintain.interface.errors import InfraError, InputError
from quintain.interface.tools import Tool, Toolset
from quintain.worlds.bridges.schemas import parameters, pointed, rewritten
from quintain.worlds.bridges.world import BridgedWorld, ToolFailed, from_environment

METHODS = ("get", "put", "post", "delete", "patch")
BODY = "body"
"""Name of the parameter that a request's body is."""
MOST_BYTES = 4_000_000
"""Most bytes read of a response."""
_JSON = "application/json"
_PLACES = ("path", "query", "header")


class OpenAPIWorld(BridgedWorld):
    """One tool for each operation; tasks come from a file and are judged as `BridgedWorld` says.

    The service behind it keeps its state: every episode meets what the ones before left. Put it back in a `reset` of
    your own, and set `snapshots = "replay"` then.

    Args:
        file: the description, JSON or YAML.
        url: base address; the description's first server by default.
        headers: of every request; `$NAME` stands for a variable of the environment.
        seconds: a request that is not answered by then has failed.

    Raises:
        InputError: the description can't be used, or there is no address.
    """

    name: ClassVar[str] = "openapi"
    snapshots: ClassVar[Literal["exact", "replay", "none"]] = "none"

    def __init__(
        self, file: str, url: str = "", headers: Mapping[str, str] | None = None, seconds: float = 8.0
    ) -> None:
        self._file = file
        self._seconds = seconds
        self._headers = from_environment(headers or {}, "headers of the API")
        self._url = (url or self._api.url).rstrip("/")
        if not self._url.startswith(("http://", "https://")):
            raise InputError(f"{file}: the API needs an address: a server in the description, or the option `url`")

    @classmethod
    def shared(cls, **options: Any) -> Api:
        """The description, read once per process."""
        return Api(Path(options["file"]))

    @property
    def _api(self) -> Api:
        found: Api = self.resources(file=self._file)
        return found

    def toolset(self) -> Toolset:
        """The operations."""
        return Toolset(
            one.bind(partial(self._request, operation))
            for operation, one in zip(self._api.operations, self._api.toolset, strict=True)
        )

    def data_digest(self) -> str:
        """Digest of the description."""
        return digest({"world": self.name, "openapi": self._api.document})

    def _request(self, operation: Operation, /, **arguments: Any) -> Any:
        request = operation.request(self._url, arguments)
        for name, value in self._headers.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=self._seconds) as response:
                return _content(response.headers.get_content_type(), response.read(MOST_BYTES))
        except urllib.error.HTTPError as error:
            said = " ".join(error.read(400).decode(errors="replace").split())
            raise ToolFailed(f"{error.code} {error.reason}: {said}".rstrip(": ")) from None
        except (urllib.error.URLError, ConnectionError) as error:
            raise InfraError(f"the API at {self._url} can't be reached: {getattr(error, 'reason', error)}") from None


class Operation:
    """One operation of a description.

    Attributes:
        tool: as agents see it.
    """

    def __init__(self, path: str, method: str, record: Mapping[str, Any], more: list[Any], document: Any) -> None:
        self._path = path
        self._method = method.upper()
        where = f"{self._method} {path}"
        self._places: dict[str, str] = {}
        properties: dict[str, Any] = {}
        required = []
        for one in _parameters([*more, *record.get("parameters", ())], document, where):
            self._places[one["name"]] = one["in"]
            schema = one.get("schema") or _first_schema(one.get("content", {}))
            said = {"description": " ".join(one["description"].split())} if one.get("description") else {}
            properties[one["name"]] = {**schema, **said}
            required += [one["name"]] if one.get("required") else []
        body = _body(record, document, where)
        if body is not None:
            properties[BODY] = body["schema"]
            required += [BODY] if body["required"] else []
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        self.tool = Tool(
            name=_name(record, method, path),
            description=" ".join((record.get("summary") or record.get("description") or "").split()),
            parameters=parameters(schema, document, where),
            result=_result(record, document, where),
            read_only=method == "get",
        )

    def request(self, url: str, arguments: Mapping[str, Any]) -> urllib.request.Request:
        """The HTTP request of a call."""
        path, query, headers = self._path, [], {}
        for name, value in arguments.items():
            match self._places.get(name):
                case "path":
                    path = path.replace(f"{{{name}}}", quote(_text(value), safe=""))
                case "query":
                    query += [(name, _text(one)) for one in (value if isinstance(value, list) else [value])]
                case "header":
                    headers[name] = _text(value)
        data = None
        if BODY in arguments and BODY not in self._places:
            data = json.dumps(arguments[BODY]).encode()
            headers["Content-Type"] = _JSON
        address = f"{url}{path}" + (f"?{urlencode(query)}" if query else "")
        return urllib.request.Request(address, data, headers, method=self._method)


class Api:
    """A description that was read and checked.

    Attributes:
        document: as JSON.
        url: of its first server, "" if there is none.
        operations: in the order of the description.
        toolset: their tools.

    Raises:
        InputError: it is missing, no OpenAPI 3, or an operation can't be a tool.
    """

    def __init__(self, file: Path) -> None:
        self.document = _read(file)
        servers = self.document.get("servers") or [{}]
        self.url = str(servers[0].get("url", ""))
        try:
            self.operations = list(_operations(self.document))
            self.toolset = Toolset(one.tool for one in self.operations)
        except InputError as error:
            raise InputError(f"{file}: {error}") from None
        if not self.operations:
            raise InputError(f"{file}: describes no operation")


def _read(file: Path) -> dict[str, Any]:
    try:
        import yaml
        from openapi_pydantic import parse_obj
    except ImportError:
        raise InputError("OpenAPI needs two packages: pip install 'quintain[openapi]'") from None

    if not file.is_file():
        raise InputError(f"OpenAPI file not found: {file}")
    try:
        text = file.read_text(encoding="utf-8")
        if any(isinstance(one, yaml.AliasEvent) for one in yaml.parse(text, yaml.CSafeLoader)):
            raise InputError(f"{file}: aliases of YAML (`*name`) can stand for any size; write `$ref` in their place")
        document = yaml.load(text, yaml.CSafeLoader)  # JSON is YAML
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{file}: neither JSON nor YAML: {' '.join(str(error).split())[:120]}") from None
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith("3."):
        raise InputError(f"{file}: no OpenAPI 3 description (its key `openapi` says which); convert older ones first")
    document = dict(json.loads(json.dumps(document, default=str)))  # dates of YAML are texts
    try:
        parse_obj(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{file}: no valid OpenAPI: {place}: {first['msg']}") from None
    return document


def _operations(document: dict[str, Any]) -> Iterator[Operation]:
    for path, item in document.get("paths", {}).items():
        for method in METHODS:
            if method in item:
                yield Operation(path, method, item[method], item.get("parameters", []), document)


def _parameters(records: list[Any], document: Any, where: str) -> Iterator[dict[str, Any]]:
    """Parameters with references followed; the operation's own stand in for the path's."""
    found = {(one["name"], one["in"]): one for one in (pointed(one, document, where) for one in records)}
    yield from (one for one in found.values() if one["in"] in _PLACES)


def _first_schema(content: Mapping[str, Any]) -> Any:
    return next((one.get("schema", {}) for one in content.values()), {})


def _body(record: Mapping[str, Any], document: Any, where: str) -> dict[str, Any] | None:
    if "requestBody" not in record:
        return None
    body = pointed(record["requestBody"], document, where)
    content = body.get("content", {})
    if _JSON not in content:
        raise InputError(f"{where}: a body of type {next(iter(content), 'none')!r} is not supported; only {_JSON} is")
    return {"schema": content[_JSON].get("schema", {}), "required": body.get("required", False)}


def _result(record: Mapping[str, Any], document: Any, where: str) -> dict[str, Any] | None:
    """Schema of the first response of success that is JSON."""
    for status, one in sorted(record.get("responses", {}).items()):
        if status.startswith("2"):
            schema = pointed(one, document, where).get("content", {}).get(_JSON, {}).get("schema")
            return rewritten(schema, document, where) if schema else None
    return None


def _name(record: Mapping[str, Any], method: str, path: str) -> str:
    return re.sub(r"\W+", "_", record.get("operationId") or f"{method}{path}").strip("_")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _content(kind: str, data: bytes) -> Any:
    if kind != _JSON and not kind.endswith("+json"):
        return data.decode(errors="replace")
    try:
        return json.loads(data) if data.strip() else None
    except ValueError as error:
        raise ToolFailed(f"the response says that it is JSON and is not: {error}") from None
