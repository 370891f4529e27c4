// What agents made of injected faults, and whether they repeat calls that failed.

const steps = (estimate) =>
  estimate ? [h("b", {}, number(estimate.value)), " ", h("small", {}, `[${number(estimate.low)}, ${number(estimate.high)}]`)] : none;

const faultRow = (name, stage, rates) =>
  h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, stage.name), h("td", {}, count(rates.episodes)),
    h("td", {}, rate(rates.recovery)), h("td", {}, rate(rates.success, true)), h("td", {}, rate(rates.declined, true)),
    h("td", {}, rate(rates.repeat, true)), h("td", {}, steps(rates.steps)));

const faultTable = (stages) => {
  const named = [...new Set(stages.flatMap((stage) => Object.keys(stage.evaluation.recovery.by_kind)))];
  const rows = stages.map((stage) => faultRow("any fault", stage, stage.evaluation.recovery.struck));
  for (const kind of named) {
    for (const stage of stages) {
      const rates = stage.evaluation.recovery.by_kind[kind];
      if (rates) rows.push(faultRow(kind.replace(/_/g, " "), stage, rates));
    }
  }
  return h("div", { class: "card" }, h("h3", {}, "Episodes that a fault struck"),
    table("Episodes that a fault struck",
      ["Fault", "Stage", "Episodes", "Recovered", "Succeeded", "Declined honestly", "Repeated what failed", "Turns to recover"], rows));
};

const repeatTable = (stages) =>
  h("div", { class: "card" }, h("h3", {}, "All episodes"),
    table("All episodes", ["Stage", "pass@1 of episodes without a fault", "Repeated what failed"], stages.map((stage) =>
      h("tr", {}, h("th", { scope: "row" }, stage.name), h("td", {}, rate(stage.evaluation.recovery.spared)),
        h("td", {}, rate(stage.evaluation.recovery.repeat))))));

const recoverySection = () => {
  const struck = evaluated.filter((stage) => stage.evaluation.recovery.struck.episodes);
  const failing = evaluated.filter((stage) => stage.evaluation.recovery.repeat);
  return failing.length > 0 && section("recovery", "Recovery from failure",
    "Recovered: succeeded, or declined after a fault that stays. Repeated: the identical call again, although it could not help.",
    struck.length > 0 && faultTable(struck), repeatTable(failing));
};
