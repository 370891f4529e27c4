"""Writes the almanac as HTML files: a page for each thing, a list for each kind, a start page for each country."""

from __future__ import annotations

from html import escape
from pathlib import Path

from quintain.worlds.desk.atlas import share
from quintain.worlds.web.almanac import COUNTS, RELATIONS, Country, Kind, Thing, countries
from quintain.worlds.web.wording import COMMENTS, HOME, KINDS, LINKED, MISLEADING, VALUES


def publish(folder: Path) -> None:
    """Writes all pages into an existing folder."""
    for country in countries():
        place = folder / country.root.strip("/")
        place.mkdir(parents=True, exist_ok=True)
        (place / "index.html").write_text(_start(country), encoding="utf-8")
        for kind in COUNTS:
            (place / f"{kind}.html").write_text(_list(country, kind), encoding="utf-8")
        for thing in country.things:
            (place / thing.file).write_text(_thing(country, thing), encoding="utf-8")


def _page(country: Country, title: str, body: str) -> str:
    language = country.language
    lists = "".join(f'<li><a href="{kind}.html">{KINDS[kind][language][1]}</a></li>' for kind in COUNTS)
    return (
        f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8"><title>{escape(title)}</title></head>\n'
        f"<body><main><h1>{escape(title)}</h1>\n{body}</main>\n"
        f'<nav><ul><li><a href="index.html">{HOME[language]}</a></li>{lists}</ul></nav></body></html>\n'
    )


def _start(country: Country) -> str:
    rows = (f"<tr><th>{KINDS[kind][country.language][1]}</th><td>{len(country.of(kind))}</td></tr>" for kind in COUNTS)
    return _page(country, HOME[country.language], f"<table>{''.join(rows)}</table>")


def _list(country: Country, kind: Kind) -> str:
    return _page(country, KINDS[kind][country.language][1], _links(country.of(kind)))


def _links(things: list[Thing]) -> str:
    return "<ul>" + "".join(f"<li>{_link(thing)}</li>" for thing in things) + "</ul>\n"


def _link(thing: Thing) -> str:
    return f'<a href="{thing.file}">{escape(thing.name)}</a>'


def _thing(country: Country, thing: Thing) -> str:
    language = country.language
    rows = "".join(
        f"<tr><th>{VALUES[name][language]}</th><td>{value}</td></tr>" for name, value in thing.values.items()
    )
    kept = [name for name in RELATIONS[thing.kind] if name in thing.links]
    said = (LINKED[thing.kind, name][language][0].format(t=_link(thing.links[name])) for name in kept)
    body = f"<p>{KINDS[thing.kind][language][0]}</p>\n<table>{rows}</table>\n<p>{' '.join(said)}</p>\n"
    for (kind, name), things in thing.backlinks.items():
        body += f"<h2>{LINKED[kind, name][language][2]}</h2>\n{_links(things)}"
    return _page(country, thing.name, body + _comments(country, thing))


def _comments(country: Country, thing: Thing) -> str:
    if not thing.misled:
        return ""
    texts = MISLEADING[country.language]
    text = texts[int(share(f"comment {country.root} {thing.key}") * len(texts))]
    return f"<h2>{COMMENTS[country.language]}</h2>\n<p>{escape(text)}</p>\n"
