// Success against cost: a point a stage with its interval; those that nobody beats on both are drawn in colour.

const costPlot = () => {
  const unit = ["tokens", "calls"].find((one) => evaluated.filter((stage) => stage.evaluation.cost[`mean_${one}`]).length > 1);
  if (!unit) return null;
  const points = evaluated.map((stage) => ({ name: stage.name, pass1: stage.evaluation.overall.pass1, cost: stage.evaluation.cost[`mean_${unit}`] || 0,
    best: (data.frontier[unit] || []).includes(stage.name) }));
  const most = Math.max(...points.map((one) => one.cost));
  const words = points.map((one) => `${one.name} ${share(one.pass1.value)} at ${number(one.cost)}`).join("; ");
  const label = unit === "tokens" ? "generated tokens per episode" : "tool calls per episode";
  return h("div", { class: "card" }, h("h3", {}, "Success against cost"), chart((width) => {
    const height = 230, left = 46, right = 96, top = 10, bottom = 40;
    const x = (cost) => left + (cost / most) * (width - left - right), y = (value) => height - bottom - value * (height - top - bottom);
    const image = svg("svg", { width, height, role: "img", "aria-label": `pass@1 against ${label}: ${words}` });
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      image.append(svg("line", { class: "rule", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
        svg("text", { class: "axis", x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, String(tick)));
    }
    for (const tick of ticks(0, most, Math.max(2, width / 130))) {
      image.append(svg("text", { class: "axis", x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, number(tick)));
    }
    image.append(svg("text", { class: "axis", x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, label));
    let below = -Infinity; // names of points that lie close together are set one below the other
    for (const one of points.sort((a, b) => b.pass1.value - a.pass1.value)) {
      below = Math.max(y(one.pass1.value) + 4, below + 13);
      image.append(svg("g", { class: one.best ? "trained" : "base" }, svg("title", {}, `${one.name} ${share(one.pass1.value)} ${range(one.pass1)}`),
        svg("line", { class: "whisker", x1: x(one.cost), x2: x(one.cost), y1: y(one.pass1.low), y2: y(one.pass1.high) }),
        svg("circle", { class: "dot", cx: x(one.cost), cy: y(one.pass1.value), r: 6 }),
        svg("text", { x: x(one.cost) + 10, y: below }, one.name.length > 14 ? one.name.slice(0, 13) + "…" : one.name)));
    }
    return image;
  }), Object.entries(data.frontier).map(([name, names]) => h("p", { class: "note" }, `Nobody beats both success and ${name} of: ${names.join(", ")}.`)));
};
