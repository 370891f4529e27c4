// The page of `quintain view`: a list that is fetched stretch by stretch, one episode, or two beside each other.

const FACETS = [["stage", "Stage"], ["result", "Result"], ["outcome", "Outcome"], ["template", "Template"], ["flag", "Judgement"]];
const FLAGS = [["keep", "Keep", "k"], ["flag", "Flag", "f"], ["", "Take back", "u"]];
const named = { "": "not judged", keep: "kept", flag: "flagged" };

const ask = async (path, body) => {
  const post = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const reply = await fetch(path, post);
  const read = await reply.json();
  if (!reply.ok) throw new Error(read.error || `error ${reply.status}`);
  return read;
};

const state = { rows: [], total: 0, current: null, shown: null, view: "turns", asked: 0, queue: "" };

const list = h("ul", { class: "list", role: "listbox", tabindex: 0, id: "episodes", "aria-label": "Episodes" });
const detail = h("article", { class: "detail", tabindex: -1, id: "episode", "aria-label": "Episode" });
const found = h("span", { class: "note", role: "status", id: "found" });
const said = h("p", { class: "note said", role: "status", id: "said" });
const search = h("input", { type: "search", id: "search", placeholder: "words in prompt, calls, observations, answer …" });
const selects = FACETS.map(([name, label]) => ({ name, select: h("select", { id: `filter-${name}` }), label }));
const saved = h("a", { id: "share", href: "episodes.html" }, "Save as one file");

const queues = h("div", { class: "switch", id: "queues", role: "group", "aria-label": "Spot checks" });

const tell = (text, bad) => { said.textContent = text; said.classList.toggle("bad", Boolean(bad)); };
const trying = (work) => async (...given) => {
  try { await work(...given); } catch (error) { tell(error.message, true); }
};

const query = () => {
  const asked = new URLSearchParams();
  if (search.value.trim()) asked.set("words", search.value.trim());
  for (const { name, select } of selects) if (select.value !== "*" && select.value !== undefined && select.selectedIndex > 0) asked.set(name, select.value);
  if (state.queue) {
    asked.set("stage", state.queue);
    asked.set("spot_check", "sheet");
  }
  return asked;
};

const itemId = (row) => `item-${row.key}`;
const sign = (row) => ({ success: "✓", failure: "✗" })[row.result] || "?";
const item = (row) =>
  h("li", { role: "option", id: itemId(row), "aria-selected": "false", onclick: () => open(row) },
    h("span", { class: `glyph ${{ success: "good", failure: "bad" }[row.result] || ""}`, "aria-hidden": "true" }, sign(row)),
    h("span", { class: "what" }, row.prompt),
    h("span", { class: "meta" }, `${row.result} · ${row.stage} · ${row.template || "(none)"} · ${plural(row.turns, "turn")}${row.flag ? ` · ${named[row.flag]}` : ""}`));

const more = trying(async () => {
  const number = ++state.asked;
  const asked = query();
  asked.set("first", state.rows.length);
  const reply = await ask(`episodes?${asked}`);
  if (number !== state.asked) return; // something newer was asked meanwhile
  state.rows.push(...reply.rows);
  state.total = reply.total;
  list.append(...reply.rows.map(item));
  found.textContent = `${count(state.total)} found`;
  if (reply.facets) offer(reply.facets);
});

const offer = (facets) => {
  for (const { name, select } of selects) {
    const chosen = select.selectedIndex > 0 ? select.value : null;
    const options = Object.entries(facets[name]).map(([value, amount]) =>
      h("option", { value, selected: value === chosen }, `${name === "flag" ? named[value] : value || "(none)"} (${count(amount)})`));
    select.replaceChildren(h("option", { value: "*" }, "all"), ...options);
  }
};

const refresh = async () => {
  state.rows = [];
  list.replaceChildren();
  saved.href = `episodes.html?${query()}`;
  await more();
  if (!state.rows.length) detail.replaceChildren(h("p", { class: "empty" }, "No episode fits these filters."));
  else await open(state.rows[0]);
};

const open = trying(async (row) => {
  state.current = row;
  for (const one of list.children) one.setAttribute("aria-selected", String(one.id === itemId(row)));
  list.setAttribute("aria-activedescendant", itemId(row));
  const reply = await ask(`episodes/${row.key}`);
  if (state.current !== row) return;
  data.vocabulary = reply.vocabulary;
  state.shown = reply.episode;
  await draw();
});

const draw = async () => {
  const episode = state.shown;
  const views = [["turns", "Turns"], ...(episode.segments.length ? [["tokens", "Tokens"]] : []), ["compare", "Compare"]];
  if (!views.some(([name]) => name === state.view)) state.view = "turns";
  const button = ([name, text]) => h("button", { type: "button", "data-view": name, "aria-pressed": String(state.view === name),
    onclick: trying(async () => { state.view = name; await draw(); detail.querySelector(`[data-view=${name}]`).focus(); }) }, text);
  const body = state.view === "compare" ? await comparison(episode) : state.view === "tokens" ? tokensView(episode) : withFixes(episode);
  detail.replaceChildren(...episodeHead(episode), judgement(episode), h("div", { class: "switch" }, views.map(button)), body);
  detail.scrollTop = 0;
};

// Spot checks: the episodes of an evaluation's sheet, one after the other.

const countQueues = async () => {
  const found = await ask("spot-checks");
  queues.replaceChildren(...found.map((one) => h("button", { type: "button", "data-queue": one.stage, "aria-pressed": String(one.stage === state.queue),
    onclick: trying(() => choose(one.stage)) }, `Spot check of ${one.stage}: ${plural(one.episodes, "episode")}, ${one.reviewed} reviewed`)));
};

const choose = async (stage) => {
  state.queue = stage === state.queue ? "" : stage;
  search.value = "";
  for (const { select } of selects) select.selectedIndex = 0;
  await refresh();
  await countQueues();
  list.focus();
};

const goOn = async () => {
  const next = state.rows.find((row) => !row.flag);
  if (next) await open(next);
};

// Judgements and corrections.

const judgement = () => {
  const remark = h("textarea", { rows: 1, id: "remark", "aria-label": "Remark", placeholder: "Remark" });
  return h("div", { class: "judge", role: "group", "aria-label": "Judgement" },
    FLAGS.map(([flag, text, key]) => h("button", { type: "button", "data-flag": flag, "aria-pressed": String(state.current.flag === flag && flag !== ""),
      onclick: () => judge(flag, remark.value) }, `${text} `, h("kbd", {}, key))), remark);
};

const judge = trying(async (flag, remark) => {
  const row = state.current;
  await ask(`episodes/${row.key}/flag`, { stage: row.stage, episode: row.id, flag, remark });
  row.flag = flag;
  document.getElementById(itemId(row)).replaceWith(item(row));
  document.getElementById(itemId(row)).setAttribute("aria-selected", "true");
  for (const one of detail.querySelectorAll("[data-flag]")) one.setAttribute("aria-pressed", String(one.dataset.flag === flag && flag !== ""));
  await countQueues();
  if (state.queue && flag) await goOn();
  tell(`${row.id}: ${named[flag]}`);
});

const correct = trying(async () => {
  state.view = "turns";
  await draw();
  const last = [...detail.querySelectorAll(".fix")].at(-1);
  last.open = true;
  last.querySelector("textarea").focus();
});

const withFixes = (episode) => {
  const shown = turnsView(episode);
  const turns = [...shown.children].filter((one) => one.querySelector(".who").textContent.startsWith("turn "));
  turns.forEach((one, index) => { if (episode.turns[index].summary === null) one.lastElementChild.append(fix(episode, index)); });
  return shown;
};

const fix = (episode, index) => {
  const turn = episode.turns[index];
  const deed = turn.answer !== null ? { thought: turn.thought, answer: turn.answer } : { thought: turn.thought, calls: turn.calls };
  const text = h("textarea", { "aria-label": `Correction of turn ${index + 1}`, spellcheck: "false" });
  text.value = JSON.stringify(deed, null, 1);
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(); });
  const save = trying(async () => {
    let written;
    try { written = JSON.parse(text.value); } catch (error) { throw new Error(`turn ${index + 1} is not valid JSON: ${error.message}`); }
    await ask(`episodes/${state.current.key}/correction`, { episode: episode.id, turn: index, ...written });
    tell(`turn ${index + 1} of ${episode.id}: correction saved`);
  });
  return h("details", { class: "fix" }, h("summary", {}, "Correct this turn"), text, h("button", { type: "button", onclick: save }, "Save the correction"));
};

// Two episodes of one task.

const deed = (turn) => turn && JSON.stringify([turn.thought, turn.calls, turn.answer, turn.text, turn.summary, turn.observations.map((one) => [one.text, one.error])]);

const comparison = async (episode) => {
  const others = (await ask(`episodes?${new URLSearchParams({ task: episode.task })}`)).rows.filter((row) => row.key !== state.current.key);
  if (!others.length) return h("p", { class: "empty" }, "No other episode has this task.");
  const place = h("div", { class: "pair" });
  const select = h("select", { id: "other" }, others.map((row) => h("option", { value: row.key }, `${row.stage} · ${row.id} · ${row.result}`)));
  const show = trying(async () => {
    const other = (await ask(`episodes/${select.value}`)).episode;
    const rows = Array.from({ length: Math.max(episode.turns.length, other.turns.length) }, (_, index) => [episode.turns[index], other.turns[index], index]);
    place.replaceChildren(...[episode, other].map((one) => h("div", {}, h("h4", {}, `${one.stage} · ${one.id}`), h("span", { class: `tag ${tone(one)}` }, `${glyph(one)} ${result(one)}`))),
      ...rows.flatMap(([left, right, index]) => {
        const same = deed(left) === deed(right);
        return [left, right].map((turn) => h("div", { class: same ? "same" : "differs" }, h("div", { class: "note" }, `turn ${index + 1}${same ? "" : ", differs"}`),
          turn ? h("ol", { class: "turns" }, turnView(turn, index)) : h("p", { class: "empty" }, "no such turn")));
      }));
  });
  select.addEventListener("change", show);
  await show();
  return h("div", {}, h("label", {}, "With ", select), place);
};

// Keys, and the page.

const step = async (by) => {
  const at = state.rows.indexOf(state.current) + by;
  if (at >= state.rows.length - 1 && state.rows.length < state.total) await more();
  if (!state.rows.length) return;
  await open(state.rows[Math.max(0, Math.min(state.rows.length - 1, at))]);
  document.getElementById(itemId(state.current)).scrollIntoView({ block: "nearest", behavior: "instant" });
};

list.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
  if (event.key === "Enter") detail.focus();
  if (by === undefined) return;
  event.preventDefault();
  step(by);
});
list.addEventListener("scroll", () => {
  if (list.scrollTop + list.clientHeight > list.scrollHeight - 200 && state.rows.length < state.total) more();
});
detail.addEventListener("keydown", (event) => { if (event.key === "Escape") list.focus(); });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const flag = FLAGS.find(([, , key]) => key === event.key);
  if (flag && state.current) judge(flag[0], document.getElementById("remark").value);
  if (event.key === "c" && state.current) {
    event.preventDefault(); // or the letter would stand in the text
    correct();
  }
  if (event.key !== "/") return;
  event.preventDefault();
  search.focus();
});
let waiting = 0;
search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(refresh, 150); });
for (const { select } of selects) select.addEventListener("change", refresh);

const main = document.getElementById("main");
main.classList.add("view");
main.append(h("section", { id: "trajectories", "aria-labelledby": "title" }, h("h2", { id: "title" }, "Episodes"),
  h("p", { class: "note wide" }, h("kbd", {}, "/"), " search, ", h("kbd", {}, "↑"), " ", h("kbd", {}, "↓"), " choose, ", h("kbd", {}, "Enter"), " read, ",
    h("kbd", {}, "Esc"), " back, ", h("kbd", {}, "k"), " keep, ", h("kbd", {}, "f"), " flag, ", h("kbd", {}, "u"), " take back, ", h("kbd", {}, "c"), " correct the last turn, ", h("kbd", {}, "Ctrl"), " ", h("kbd", {}, "Enter"), " save it. "),
  queues,
  h("div", { class: "tools" }, h("label", { class: "wide" }, "Search", search), selects.map(({ label, select }) => h("label", {}, label, select)), found, saved),
  said, h("div", { class: "viewer live" }, list, detail)));
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
countQueues();
refresh();
