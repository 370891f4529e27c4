// The list of trajectories with its filters, the sheet to check by hand, and the page itself.

const FILTERS = [
  ["stage", "Stage", (episode) => episode.stage],
  ["source", "From", (episode) => episode.source],
  ["result", "Result", result],
  ["outcome", "Outcome", (episode) => episode.outcome],
  ["template", "Template", (episode) => episode.template],
];

const haystacks = new Map();
const haystack = (episode) => {
  if (!haystacks.has(episode)) {
    const { segments, ...words } = episode;
    haystacks.set(episode, Object.values(words).map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" ").toLowerCase());
  }
  return haystacks.get(episode);
};

const viewerSection = () => {
  const rank = (episode) => data.stages.findIndex((stage) => stage.name === episode.stage);
  const all = [...data.trajectories].sort((a, b) => rank(b) - rank(a)); // the latest stage first
  const cap = data.episodes.sampled > all.length ? `; the page holds at most ${data.episodes.limit}` : "";
  const note = `${count(all.length)} of ${count(data.episodes.sampled)} sampled episodes are embedded${cap}. Long texts are cut. `;
  if (!all.length) return section("trajectories", "Trajectories", null, h("p", { class: "empty" }, "No episodes were sampled."));
  const list = h("ul", { class: "list", role: "listbox", tabindex: 0, id: "episodes", "aria-label": "Trajectories" });
  const detail = h("article", { class: "detail", tabindex: -1, id: "episode", "aria-label": "Trajectory" });
  const found = h("span", { class: "note", role: "status" });
  const search = h("input", { type: "search", id: "search", placeholder: "words in prompt, calls, observations, answer …", oninput: () => refresh() });
  const selects = FILTERS.map(([id, label, value]) => {
    const values = [...new Set(all.map(value))].sort();
    const select = h("select", { id: `filter-${id}`, onchange: () => refresh() }, h("option", { value: "" }, "all"),
      values.map((one) => h("option", { value: one }, one)));
    return { select, value, label: values.length > 1 && h("label", {}, label, select) };
  });
  let shown = [], view = "turns", current = null;

  const open = (episode) => {
    current = episode;
    const button = (name, text) => h("button", { type: "button", "aria-pressed": String(view === name), "data-view": name,
      onclick: () => { view = name; open(episode); detail.querySelector(`[data-view=${name}]`).focus(); } }, text);
    const tokens = episode.segments.length > 0;
    detail.replaceChildren(...episodeHead(episode),
      tokens ? h("div", { class: "switch" }, button("turns", "Turns"), button("tokens", "Tokens")) : "",
      view === "tokens" && tokens ? tokensView(episode) : turnsView(episode));
    for (const item of list.children) item.setAttribute("aria-selected", String(item.id === itemId(episode)));
    list.setAttribute("aria-activedescendant", itemId(episode));
    detail.scrollTop = 0;
  };
  const itemId = (episode) => `item-${all.indexOf(episode)}`;
  const item = (episode) =>
    h("li", { role: "option", id: itemId(episode), "aria-selected": "false", onclick: () => open(episode) },
      h("span", { class: `glyph ${tone(episode)}`, "aria-hidden": "true" }, glyph(episode)),
      h("span", { class: "what" }, prompt(episode)),
      h("span", { class: "meta" }, `${result(episode)} · ${episode.stage} · ${episode.template} · ${plural(episode.usage.turns, "turn")}`));

  const refresh = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = all.filter((episode) => selects.every(({ select, value }) => !select.value || value(episode) === select.value)
      && words.every((word) => haystack(episode).includes(word)));
    list.replaceChildren(...shown.map(item));
    found.textContent = `${count(shown.length)} shown`;
    if (!shown.length) detail.replaceChildren(h("p", { class: "empty" }, "No trajectory fits these filters."));
    else open(shown.includes(current) ? current : shown[0]);
  };
  list.addEventListener("keydown", (event) => {
    const at = shown.indexOf(current);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 10, PageUp: at - 10, Home: 0, End: shown.length - 1 }[event.key];
    if (event.key === "Enter") detail.focus();
    if (to === undefined || !shown.length) return;
    event.preventDefault();
    open(shown[Math.max(0, Math.min(shown.length - 1, to))]);
    document.getElementById(itemId(current)).scrollIntoView({ block: "nearest", behavior: "instant" });
  });
  detail.addEventListener("keydown", (event) => {
    if (event.key === "Escape") list.focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    search.focus();
  });
  refresh();
  return section("trajectories", "Trajectories", [note, h("kbd", {}, "/"), " search, ", h("kbd", {}, "↑"), " ", h("kbd", {}, "↓"), " choose, ", h("kbd", {}, "Enter"), " read, ", h("kbd", {}, "Esc"), " back."],
    h("div", { class: "tools" }, h("label", { class: "wide" }, "Search", search), selects.map((one) => one.label), found),
    h("div", { class: "viewer" }, list, detail));
};

const checkSection = () => {
  const sheet = data.spot_check.map((index) => data.trajectories[index]);
  if (!sheet.length) return null;
  const judged = new Map();
  const done = h("span", { class: "note", role: "status" }, `0 of ${sheet.length} read`);
  const note = (episode, part) => {
    judged.set(episode, { id: episode.id, task: episode.task, stage: episode.stage, verdict: result(episode), agree: "", remark: "", ...judged.get(episode), ...part });
    done.textContent = `${[...judged.values()].filter((one) => one.agree).length} of ${sheet.length} read`;
  };
  const save = () => {
    const text = JSON.stringify({ title: data.title, checks: [...judged.values()] }, null, 1);
    const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: "spot_check.json" });
    link.click();
  };
  const card = (episode, index) =>
    h("article", { class: "card" }, h("details", {}, h("summary", {}, h("span", { class: `tag ${tone(episode)}` }, `${glyph(episode)} ${result(episode)}`), ` ${prompt(episode)}`),
      episodeHead(episode), turnsView(episode)),
      h("fieldset", {}, h("legend", {}, "Is the verdict right?"),
        ["yes", "no", "unsure"].map((choice) => h("label", {}, h("input", { type: "radio", name: `check-${index}`, value: choice, onchange: () => note(episode, { agree: choice }) }), choice)),
        h("textarea", { rows: 1, placeholder: "Remark", "aria-label": "Remark", oninput: (event) => note(episode, { remark: event.target.value }) })));
  return section("check", "Spot check", "Sampled trajectories of the last stage for a person to read: a number is only as good as its verdicts.",
    h("div", { class: "sheet" }, sheet.map(card)),
    h("div", { class: "tools" }, h("button", { type: "button", onclick: save }, "Save the sheet as JSON"), done));
};

const main = document.getElementById("main");
main.append(
  h("div", { class: "head" }, h("h1", {}, data.title), data.notes.map((line) => h("p", { class: "muted" }, line))),
  ...[resultSection, trainingSection, successSection, recoverySection, costSection, viewerSection, checkSection, runSection].map((make) => make()).filter(Boolean));

const sections = [...main.querySelectorAll("section")];
document.getElementById("nav").append(...sections.map((one) => h("a", { href: `#${one.id}` }, one.dataset.title)));
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((one) => one.isIntersecting)) {
    for (const link of document.querySelectorAll("#nav a")) {
      if (link.hash === `#${entry.target.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
}, { rootMargin: "-20% 0px -70% 0px" });
sections.forEach((one) => seen.observe(one));
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
