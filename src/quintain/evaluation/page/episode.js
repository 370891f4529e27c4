// One trajectory, turn by turn or token by token.

const glyph = (episode) => (episode.success === null ? "?" : episode.success ? "✓" : "✗");
const tone = (episode) => (episode.success === null ? "" : episode.success ? "good" : "bad");
const result = (episode) => (episode.success === null ? "no score" : episode.success ? "success" : "failure");
const prompt = (episode) => (episode.messages.filter((one) => one.role === "user").pop() || { text: episode.task }).text;

const argument = (value) => (typeof value === "string" ? JSON.stringify(value) : JSON.stringify(value, null, 1));
const callView = (call) =>
  h("div", { class: "call" }, h("b", {}, call.tool), "(",
    Object.entries(call.arguments).map(([name, value], index) => `${index ? ", " : ""}${name}=${argument(value)}`), ")");

const observationView = (seen) =>
  h("div", { class: seen.error ? "obs failed" : "obs" },
    (seen.error || seen.fault) && h("span", { class: "label" }, seen.error && h("b", { class: "bad" }, `error: ${seen.error} `), seen.fault && `injected fault: ${seen.fault}`),
    h("p", { class: "text" }, seen.text || "(empty)"));

const turnView = (turn, index) =>
  h("li", {}, h("div", { class: "who" }, `turn ${index + 1}`),
    h("div", {},
      turn.thought && h("p", { class: "text thought" }, turn.thought),
      turn.calls.map((call, place) => [callView(call), turn.observations[place] && observationView(turn.observations[place])]),
      turn.error && [h("div", { class: "broken" }, turn.text || "(nothing)"), turn.observations.map(observationView)],
      turn.summary !== null && [h("p", { class: "note" }, "writes a summary and goes on with it in place of all turns before"), h("p", { class: "text" }, turn.summary || "(empty summary)")],
      turn.answer !== null && h("p", { class: "text answer" }, turn.answer || "(empty answer)")));

const messageView = (one) =>
  h("li", {}, h("div", { class: "who" }, one.role),
    one.role === "system" ? h("details", {}, h("summary", {}, `${plural(one.text.length, "character")}`), h("p", { class: "text" }, one.text))
      : h("p", { class: "text" }, one.text));

const turnsView = (episode) => {
  const items = episode.messages.map(messageView);
  episode.turns.forEach((turn, index) => {
    if (episode.user[index]) items.push(messageView({ role: "user", text: episode.user[index] }));
    items.push(turnView(turn, index));
  });
  return h("ol", { class: "turns" }, items);
};

const tokenView = (text) => {
  const pieces = text.split("\n");
  return h("span", {}, pieces.map((piece, index) => (index < pieces.length - 1 ? [piece, h("i", { class: "nl", "aria-hidden": "true" }, "↵"), "\n"] : piece)));
};

const segmentView = (segment) => {
  const spans = segment.tokens.map((index) => tokenView(data.vocabulary[index]));
  const shown = [];
  let at = 0;
  for (const [start, stop, mark] of segment.marks) {
    shown.push(spans.slice(at, start), h("mark", { class: mark }, spans.slice(start, stop)));
    at = stop;
  }
  const amount = (wanted) => segment.marks.filter((run) => run[2] === wanted).reduce((sum, run) => sum + run[1] - run[0], 0);
  const [all, loss, written] = [spans.length, amount("loss"), amount("written")];
  return [h("p", { class: "note" }, `${segment.label}: ${plural(all, "token")}, ${count(loss)} with loss (${percent(all ? loss / all : 0)})` +
    (written ? `, ${count(written)} written without loss` : "")),
    h("div", { class: "tokens", tabindex: 0, role: "region", "aria-label": "Tokens" }, shown, spans.slice(at))];
};

const tokensView = (episode) =>
  h("div", {},
    h("p", { class: "note" }, h("mark", { class: "loss" }, "Marked"),
      episode.source === "training" ? " tokens carried loss in training; " : " tokens are the agent's own and would carry loss if this trajectory were trained on; ",
      h("mark", { class: "written" }, "dotted"), " ones the agent wrote too, but without loss; all others are context."),
    episode.segments.map(segmentView));

const episodeHead = (episode) => {
  const usage = episode.usage;
  const facts = [plural(usage.turns, "turn"), plural(usage.calls, "call") + (usage.repeated ? ` (${usage.repeated} repeated)` : ""),
    plural(usage.tokens, "generated token"), plural(usage.context, "context token"), duration(usage.seconds),
    `seed ${episode.seed}`, `policy version ${episode.version}`, episode.parent && `branched from ${episode.parent}`];
  return [
    h("div", { class: "title" }, h("h3", {}, episode.id), h("span", { class: `tag ${tone(episode)}` }, `${glyph(episode)} ${result(episode)}`),
      h("span", { class: episode.outcome.startsWith("limit") ? "tag limit" : "tag" }, episode.outcome),
      h("span", { class: "tag" }, episode.source === "training" ? `${episode.stage}, trained on` : episode.stage),
      h("span", { class: "tag" }, episode.template), episode.tags.map((tag) => h("span", { class: "tag" }, tag))),
    h("div", { class: "note" }, facts.filter(Boolean).join(" · ")),
    h("div", { class: `verdict ${tone(episode)}` },
      h("b", {}, episode.success === null ? "No verdict" : `Verdict: ${result(episode)}` + (isNumber(episode.score) ? `, score ${number(episode.score)}` : "")),
      episode.detail && h("div", {}, episode.detail),
      episode.reasons.length > 0 && h("ul", {}, episode.reasons.map((reason) => h("li", {}, reason))),
      episode.milestones.length > 0 && h("div", { class: "note" }, `Milestones: ${episode.milestones.join(", ")}`))];
};
