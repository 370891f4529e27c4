// The sections above the viewer, each a function of the data; null where there is nothing to say.

// Before and after are measured on the same tasks: a chain of comparisons links them. Without one, the last stage stands alone.
const chain = data.comparisons.slice(0, 1).map((one) => one.before);
data.comparisons.forEach((one) => one.before === chain[chain.length - 1] && chain.push(one.after));
const named = (name) => evaluated.find((stage) => stage.name === name);
const after = named(chain[chain.length - 1]) || evaluated[evaluated.length - 1];
const before = named(chain[0]) || after;

const fact = (name, ...value) => [h("dt", {}, name), h("dd", {}, value)];

const headline = () => {
  if (!after) return h("p", { class: "empty" }, "No stage has been evaluated yet.");
  const two = before !== after;
  const now = after.evaluation.overall, then = before.evaluation.overall;
  const paired = data.comparisons.find((one) => one.before === before.name && one.after === after.name);
  const counts = now.counts;
  const unscored = counts.infra + counts.missing;
  return h("div", { class: "hero" },
    h("div", { class: "card" },
      h("div", { class: "label" }, two ? `pass@1, ${before.name} to ${after.name}` : `pass@1, ${after.name}`),
      h("div", { class: "big" },
        two && [h("span", { class: "from" }, share(then.pass1.value)), h("span", { class: "arrow", "aria-label": "to" }, "→")],
        h("span", {}, share(now.pass1.value))),
      h("div", { class: "muted" }, two ? `${range(then.pass1)} to ${range(now.pass1)}` : range(now.pass1), ", 95 % by cluster"),
      h("dl", { class: "facts" },
        paired && fact("Paired difference", h("b", {}, signed(paired.difference.value)),
          ` [${signed(paired.difference.low)}, ${signed(paired.difference.high)}], ${pValue(paired.p_value)}`),
        fact("Measured on", `${plural(counts.tasks, "task")} in ${plural(counts.clusters, "cluster")}`),
        fact("Episodes", `${count(counts.planned)} planned, ${count(counts.scored)} scored, ${plural(counts.infra, "infra error")}` +
          (counts.missing ? `, ${count(counts.missing)} not run` : "")),
        unscored > 0 && fact("Bounds", `${share(now.bounds.low)} if all unscored fail, ${share(now.bounds.high)} if all pass`))),
    h("div", { class: "card" }, h("h3", {}, "pass@1 by stage"), intervalPlot(evaluated)));
};

const targets = () =>
  data.targets.length > 0 &&
  h("div", { class: "card" }, h("h3", {}, "Targets"),
    table("Targets", ["", "What", "Target", "Reached", "Note"], data.targets.map((one) =>
      h("tr", {},
        h("td", {}, one.met === null ? h("span", { class: "tag" }, "not measured")
          : h("span", { class: one.met ? "tag good" : "tag bad" }, one.met ? "✓ met" : "✗ missed")),
        h("td", {}, one.name), h("td", {}, one.target), h("td", {}, h("b", {}, one.reached)), h("td", { class: "muted" }, one.note)))));

const bare = (p) => pValue(p).replace("p = ", "").replace("p ", "");

const comparisons = () =>
  data.comparisons.length > 0 &&
  h("div", { class: "card" }, h("h3", {}, "Paired differences"),
    table("Paired differences", ["From", "To", "Difference in pass@1", "p", "p (Holm)", "Common tasks", "Left out"], data.comparisons.map((one) =>
      h("tr", {}, h("td", {}, one.before), h("td", {}, one.after, one.world && h("small", {}, ` in ${one.world}`)),
        h("td", {}, h("b", {}, signed(one.difference.value)), h("small", {}, ` [${signed(one.difference.low)}, ${signed(one.difference.high)}]`)),
        h("td", {}, bare(one.p_value)), h("td", {}, bare(one.p_value_holm)), h("td", {}, count(one.tasks)), h("td", {}, count(one.left_out))))));

const resultSection = () => section("result", "Result", null, headline(), targets(), comparisons());

const HIDDEN_METRICS = new Set(["step", "tokens", "seconds", "epoch", "time", "eta"]);
const describeRow = (row, step) =>
  [`step ${count(step)}`, ...Object.keys(row).filter((key) => key !== "step" && isNumber(row[key])).map((key) => `${key} ${number(row[key])}`)].join(" · ");

const training = (stage) => {
  const rows = stage.metrics;
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row).filter((key) => isNumber(row[key]))))];
  const end = rows[rows.length - 1];
  const facts = [plural(isNumber(end.step) ? end.step : rows.length, "step"), isNumber(end.tokens) && plural(end.tokens, "token"), duration(stage.seconds)];
  // A policy gradient's loss says nothing; there the monitors are what a person must see.
  const [main, open] = keys.includes("success") ? ["success", true] : ["loss", false];
  const others = keys.filter((key) => key !== main && !HIDDEN_METRICS.has(key));
  return h("div", { class: "card" },
    h("h3", {}, `${stage.name}: ${main}`), h("p", { class: "note" }, facts.filter(Boolean).join(" · ")),
    lineChart(rows, main, 240, describeRow),
    others.length > 0 && h("details", { open }, h("summary", {}, `More metrics: ${others.join(", ")}`),
      h("div", { class: "grid" }, others.map((key) => h("div", {}, h("div", { class: "label" }, key), lineChart(rows, key, 130, describeRow))))),
    h("details", {}, h("summary", {}, "Rows as a table"), metricTable(rows, keys)));
};

const metricTable = (rows, keys) => {
  const every = Math.ceil(rows.length / 100);
  const shown = rows.filter((_, index) => index % every === 0 || index === rows.length - 1);
  return [every > 1 && h("p", { class: "note" }, `Every ${every}th row.`),
    table("Training metrics", keys, shown.map((row) => h("tr", {}, keys.map((key) => h("td", {}, number(row[key]))))))];
};

const trainingSection = () => {
  const trained = data.stages.filter((stage) => stage.metrics.length);
  return trained.length > 0 && section("training", "Training", null, trained.map(training));
};

const outcomeClasses = (names) => {
  const limits = names.filter((name) => name.startsWith("limit("));
  const shade = ["c-limit", "c-limit-b", "c-limit-c"];
  return (name, right) => {
    if (name === "answered" || name === "declined") return `c-${name}-${right ? "right" : "wrong"}`;
    if (name === "infra_error") return "c-infra";
    if (name === "agent_error") return "c-error";
    return right ? "c-declined-right" : shade[limits.indexOf(name) % shade.length];
  };
};

const outcomeParts = (stage) =>
  Object.entries(stage.evaluation.outcomes).flatMap(([name, one]) => [
    { name, right: true, episodes: one.successes },
    { name, right: false, episodes: one.episodes - one.successes }]).filter((part) => part.episodes);

const outcomeWords = (part) => (part.name === "infra_error" ? "infra error, no score" : `${part.name}, ${part.right ? "right" : "wrong"}`);

const outcomes = () => {
  const stages = data.stages.filter((stage) => stage.evaluation);
  const parts = stages.flatMap(outcomeParts);
  const rank = (part) => (part.name === "infra_error" ? 9 : part.right ? 0 : part.name === "answered" ? 1 : part.name === "declined" ? 2 : 3);
  const order = (a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name);
  const color = outcomeClasses([...new Set(parts.map((part) => part.name))].sort());
  const kinds = [...new Map(parts.sort(order).map((part) => [outcomeWords(part), part])).values()];
  const bar = (stage) => {
    const mine = outcomeParts(stage).sort(order), total = mine.reduce((sum, part) => sum + part.episodes, 0);
    const pieces = mine.map((part) => {
      const piece = h("span", { class: color(part.name, part.right), title: `${outcomeWords(part)}: ${part.episodes} of ${total}` },
        part.episodes / total > 0.06 && part.name !== "infra_error" && count(part.episodes));
      piece.style.width = `${(100 * part.episodes) / total}%`;
      return piece;
    });
    const words = mine.map((part) => `${outcomeWords(part)} ${part.episodes}`).join("; ");
    return [h("div", {}, stage.name), h("div", { class: "track", role: "img", "aria-label": `${stage.name}: ${words}` }, pieces)];
  };
  return h("div", { class: "card" }, h("h3", {}, "How episodes ended"), h("div", { class: "stack" }, stages.map(bar)),
    h("ul", { class: "legend" }, kinds.map((part) => h("li", {}, h("i", { class: color(part.name, part.right) }), outcomeWords(part)))));
};

const rate = (estimate, narrow) =>
  estimate ? h("div", { class: narrow ? "rate narrow" : "rate" }, h("b", {}, share(estimate.value)), !narrow && strip(estimate), h("small", {}, range(estimate))) : none;

const groupTable = (title, key, note, label, narrow = true) => {
  const stages = evaluated.filter((stage) => Object.keys(stage.evaluation[key]).length);
  const names = [...new Set(stages.flatMap((stage) => Object.keys(stage.evaluation[key])))];
  if (!names.length) return null;
  if (names.every((name) => /^\d/.test(name))) names.sort((a, b) => parseInt(a, 10) - parseInt(b, 10));
  const tasks = (name) => Math.max(...stages.map((stage) => (stage.evaluation[key][name] || { counts: { tasks: 0 } }).counts.tasks));
  return h("div", { class: "card" }, h("h3", {}, title), note && h("p", { class: "note" }, note),
    table(title, [label, "Tasks", ...stages.map((stage) => stage.name)], names.map((name) =>
      h("tr", {}, h("th", { scope: "row", title: name }, name.replace("held_out", "held out")), h("td", {}, count(tasks(name))),
        stages.map((stage) => h("td", {}, rate((stage.evaluation[key][name] || {}).pass1, narrow || stages.length > 3)))))));
};

const several = () => evaluated.some((stage) => Object.keys(stage.evaluation.by_world).length > 1);

const samplesTable = () => {
  const ks = [...new Set(evaluated.flatMap((stage) => Object.keys(stage.evaluation.overall.pass_k)))].map(Number).sort((a, b) => a - b);
  if (ks.length < 2) return null;
  const worlds = (stage) => (several() ? Object.entries(stage.evaluation.by_world) : []);
  const parts = evaluated.flatMap((stage) =>
    [[stage.name, stage.evaluation.overall], ...worlds(stage).map(([world, part]) => [`${stage.name}: ${world}`, part])]);
  const row = ([label, part], name, key) => h("tr", {}, h("th", { scope: "row" }, label), h("td", {}, name),
    ks.map((k) => h("td", {}, rate(part[key][k]))));
  return h("div", { class: "card" }, h("h3", {}, "Several samples of a task"),
    h("p", { class: "note" }, "pass@k: at least one of k samples succeeds. pass^k: all of k succeed. Both unbiased; neither is the result."),
    table("pass@k and pass^k", ["Stage", "", ...ks.map((k) => `k = ${k}`)],
      parts.flatMap((part) => [row(part, "pass@k", "pass_k"), row(part, "pass^k", "pass_hat_k")])));
};

const successSection = () =>
  evaluated.length > 0 && section("success", "Where it succeeds", "pass@1 with its 95 % interval, resampled by cluster.",
    outcomes(), several() && groupTable("By world", "by_world", null, "World", false),
    groupTable("By template", "by_template", null, "Template", false),
    h("div", { class: evaluated.length > 3 ? "grid single" : "grid pairs" }, groupTable("By language", "by_language", null, "Language"),
      groupTable("Templates seen in training and held out", "by_held_out", null, "Template"),
      groupTable("Clean and contaminated", "by_contamination", "Contaminated: training data or a tool's result gave the task away.", "Tasks"),
      groupTable("By depth of the task", "by_hops", "Hops that the task needs.", "Hops"),
      groupTable("By length of the episode", "by_turns", "Turns that the agent took, so long episodes are also the harder ones.", "Turns")),
    samplesTable());

const COST_ROWS = [
  ["Cost", null],
  ["Tool calls per success", (e) => number(e.cost.calls_per_success)],
  ["Generated tokens per success", (e) => number(e.cost.tokens_per_success)],
  ["Seconds per success", (e) => number(e.cost.seconds_per_success)],
  ["Turns per episode", (e) => number(e.cost.mean_turns)],
  ["Tool calls per episode", (e) => number(e.cost.mean_calls)],
  ["Generated tokens per episode", (e) => number(e.cost.mean_tokens)],
  ["Price per episode", (e) => number(e.cost.mean_price)],
  ["Behaviour", null],
  ["Goal kept in episodes of 20 turns and more", (e) => percent(e.goal_keeping.kept)],
  ["Malformed turns", (e) => percent(e.behaviour.format_error_rate) + kinds(e.behaviour.format_errors)],
  ["Invalid calls", (e) => percent(e.behaviour.invalid_call_rate)],
  ["Calls that failed in the tool", (e) => percent(e.behaviour.tool_error_rate) + kinds(e.behaviour.tool_errors)],
  ["Repeated calls", (e) => percent(e.behaviour.repeated_call_rate)],
  ["Declined, rightly / wrongly", (e) => `${count(e.behaviour.declined_right)} / ${count(e.behaviour.declined_wrong)}`],
];
const kinds = (rates) => {
  const named = Object.entries(rates).map(([kind, value]) => `${kind.replace(/_/g, " ")} ${percent(value)}`);
  return named.length ? ` (${named.join(", ")})` : "";
};

const costSection = () =>
  evaluated.length > 0 && section("cost", "Cost and behaviour", "Per success counts what failures cost, too.",
    h("div", { class: "card" }, table("Cost and behaviour", ["", ...evaluated.map((stage) => stage.name)], COST_ROWS.map(([name, value]) =>
      value === null ? h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: evaluated.length + 1 }, name))
        : h("tr", {}, h("th", { scope: "row" }, name), evaluated.map((stage) => h("td", {}, value(stage.evaluation))))))), costPlot());

const timing = () => {
  const longest = Math.max(...data.stages.map((stage) => stage.seconds), 1e-9);
  const total = data.stages.reduce((sum, stage) => sum + stage.seconds, 0);
  return h("div", { class: "card" }, h("h3", {}, `Time: ${duration(total)}`),
    table("Time by stage", ["Stage", "Kind", "Time", "", "Notes"], data.stages.map((stage) => {
      const bar = h("span", { class: "c-time" });
      bar.style.width = `${(100 * stage.seconds) / longest}%`;
      return h("tr", {}, h("th", { scope: "row" }, stage.name), h("td", {}, stage.kind), h("td", {}, duration(stage.seconds)),
        h("td", { class: "bar-cell" }, h("div", { class: "track thin" }, bar)), h("td", { class: "muted" }, stage.notes.join(" ")));
    })));
};

const listing = (title, entries) =>
  Object.keys(entries).length > 0 &&
  h("div", { class: "card" }, h("h3", {}, title), h("dl", { class: "facts plain" }, Object.entries(entries).map(([name, value]) => fact(name, value))));

const runSection = () =>
  (data.stages.length || data.recipe || Object.keys({ ...data.machine, ...data.versions }).length) > 0 && section("run", "Run", null,
    data.stages.length > 0 && timing(), lineage(),
    h("div", { class: "grid" }, listing("Machine", data.machine), listing("Versions and digests", data.versions)),
    data.recipe && h("div", { class: "card" }, h("details", {}, h("summary", {}, "Recipe"), h("pre", { tabindex: 0 }, data.recipe))));
