"""An MCP server by hand, from the protocol's text alone: it starts fast and can misbehave in any way.

Arguments: `misbehaviour` and, for some, a file in which starts are counted.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from pathlib import Path

WAY = sys.argv[1] if len(sys.argv) > 1 else "well"
COUNTED = Path(sys.argv[2]) if len(sys.argv) > 2 and WAY != "files" else None

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


def tool(name, schema=NUMBERS, **more):
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema, **more}


TOOLS = {
    "add": tool("add", outputSchema=SUM, annotations={"readOnlyHint": True}),
    "count": tool("count", {"type": "object"}),
    "say": tool("say", {"type": "object", "properties": {"text": {"type": "string"}, "tone": {"title": "Tone"}}}),
    "trouble": tool("trouble", {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"}),
}

state = {"count": 0}
started = 1


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def call(name, arguments):
    if name == "add":
        total = arguments["a"] + arguments["b"]
        structured = {"total": total} if WAY == "lies" else {"sum": total}
        return text(str(total), structuredContent=structured)
    if name == "count":
        state["count"] += 1
        return text(str(state["count"]))
    if name == "say":
        return text(arguments.get("text", "nothing"))
    return trouble()


def trouble():
    match WAY:
        case "dies":
            print("no memory left", file=sys.stderr, flush=True)
            os._exit(3)
        case "dies at the first start" if started == 1:
            os._exit(3)
        case "never answers a call":
            time.sleep(600)
        case "huge":
            return text("x" * 3_000_000)
        case "image":
            data = base64.b64encode(b"\x89PNG").decode()
            return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}
        case "refuses":
            return text("no such order", isError=True)
        case "files":
            return text(Path(sys.argv[2]).read_text())
        case "no result":
            return {"nothing": "of the kind"}
    return text("all is well")


def listed(parameters):
    match WAY:
        case "twins":
            return {"tools": [TOOLS["add"], TOOLS["add"]]}
        case "read-only tools alone":
            return {"tools": [TOOLS["add"]]}
        case "one tool":
            return {"tools": [TOOLS["count"]]}
        case "no tools":
            return {"tools": []}
        case "bad schema":
            return {"tools": [tool("add", {"type": "object", "properties": {"a": {"type": "whole number"}}})]}
        case "no type":
            return {"tools": [tool("add", {"properties": {}})]}
        case "outside reference":
            return {"tools": [tool("add", {"type": "object", "$ref": "http://example.com/schema.json"})]}
        case "endless pages":
            cursor = parameters.get("cursor", "")
            return {"tools": [tool(f"t{cursor}")], "nextCursor": f"{cursor}x"}
        case "changes" if started > 1:
            return {"tools": [*TOOLS.values(), tool("extra")]}
    names = list(TOOLS)  # two a page
    first = int(parameters.get("cursor", 0))
    more = {"nextCursor": str(first + 2)} if first + 2 < len(names) else {}
    return {"tools": [TOOLS[name] for name in names[first : first + 2]], **more}


def answer(method, parameters):
    match method:
        case "initialize":
            version = parameters["protocolVersion"]
            server = {"name": "strange", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list" if WAY != "knows no tools":
            return listed(parameters)
        case "tools/call":
            return call(parameters["name"], parameters.get("arguments") or {})
    return None


def main():
    global started
    if COUNTED is not None:
        started = len(COUNTED.read_text()) + 1 if COUNTED.exists() else 1
        COUNTED.write_text("x" * started)
    if WAY == "never answers":
        time.sleep(600)
    if WAY == "dies at once":
        sys.exit("cannot open the database")
    if WAY == "dies with many words":
        sys.exit(f"+--- 1 ---\n| {'ten words ' * 100}\n+---------")
    for line in sys.stdin:
        if WAY == "garbage":
            print("Listening on port 80 {", flush=True)
            continue
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params") or {})
        outcome = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)


main()
