// Charts as SVG, drawn anew at the width of their place so that text keeps its size.

const chart = (draw) => {
  const host = h("div", {});
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(host.clientWidth);
    if (now && now !== width) host.replaceChildren(draw((width = now)));
  }).observe(host);
  return host;
};

// pass@1 of each stage on one axis from 0 to 1: a dot, and a whisker over the 95 % interval.
const intervalPlot = (stages) =>
  chart((width) => {
    const longest = Math.max(...stages.map((stage) => stage.name.length)) * 7 + 11;
    const row = stages.length > 4 ? 36 : 64, left = Math.max(64, Math.min(150, width * 0.22, longest)), right = 152, top = 8;
    const height = top + row * stages.length + 24;
    const x = (value) => left + value * (width - left - right);
    const words = stages.map((stage) => `${stage.name} ${share(stage.evaluation.overall.pass1.value)} ${range(stage.evaluation.overall.pass1)}`);
    const image = svg("svg", { width, height, role: "img", "aria-label": `pass@1 with 95 % intervals: ${words.join("; ")}` });
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      image.append(svg("line", { class: "rule", x1: x(tick), x2: x(tick), y1: top, y2: height - 20 }),
        svg("text", { class: "axis", x: x(tick), y: height - 5, "text-anchor": "middle" }, String(tick)));
    }
    stages.forEach((stage, index) => {
      const one = stage.evaluation.overall.pass1, y = top + row * (index + 0.5);
      const name = stage.name.length * 7 > left - 10 ? stage.name.slice(0, Math.floor((left - 18) / 7)) + "…" : stage.name;
      const ends = [one.low, one.high].map((end) => svg("line", { class: "whisker", x1: x(end), x2: x(end), y1: y - 5, y2: y + 5 }));
      image.append(svg("g", { class: stage.kind === "base" ? "base" : "trained" },
        svg("text", { x: 0, y: y + 4 }, name, svg("title", {}, stage.name)),
        svg("line", { class: "whisker", x1: x(one.low), x2: x(one.high), y1: y, y2: y }), ends,
        svg("circle", { class: "dot", cx: x(one.value), cy: y, r: 6.5 }),
        svg("text", { class: "value", x: width - right + 22, y: y + 4 }, share(one.value)),
        svg("text", { class: "range", x: width, y: y + 4, "text-anchor": "end" }, range(one))));
    });
    return image;
  });

// A mean and its interval inside a table cell.
const strip = (estimate) => {
  const x = (value) => 3 + value * 78;
  return svg("svg", { width: 84, height: 14, "aria-hidden": "true" },
    svg("line", { class: "strip", x1: 3, x2: 81, y1: 7, y2: 7 }),
    svg("line", { class: "whisker", x1: x(estimate.low), x2: x(estimate.high), y1: 7, y2: 7 }),
    svg("circle", { class: "dot", cx: x(estimate.value), cy: 7, r: 4.5 }));
};

const ticks = (low, high, wanted) => {
  const raw = (high - low || 1) / wanted, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
};

// Centred moving average over about a twelfth of the curve: it does not lag behind.
const smooth = (values) => {
  const reach = Math.ceil(values.length / 24);
  return values.map((_, index) => {
    const near = values.slice(Math.max(0, index - Math.min(reach, values.length - 1 - index)), index + Math.min(reach, index) + 1);
    return near.reduce((sum, one) => sum + one, 0) / near.length;
  });
};

// One metric over the steps that have it: validation comes every few steps. Pointer or arrow keys read single rows.
const lineChart = (all, key, height, describe) => {
  const rows = all.filter((row) => isNumber(row[key]));
  const readout = h("output", { class: "readout" });
  const steps = rows.map((row, index) => (isNumber(row.step) ? row.step : index + 1));
  const known = rows.map((row) => row[key]);
  if (!known.length) return h("p", { class: "empty" }, `No finite value of ${key}.`);
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const highest = Math.max(...known), least = Math.min(...known);
  const floor = least >= 0 && least < 0.5 * highest ? 0 : least;
  const span = highest - floor || Math.abs(highest) || 1;
  let chosen = rows.length - 1;
  const host = chart((width) => {
    const left = 46, right = 8, top = 8, bottom = 24;
    const x = (step) => left + ((step - first) / (last - first || 1)) * (width - left - right);
    const y = (value) => height - bottom - ((value - floor) / span) * (height - top - bottom);
    const path = (series) => series.map((value, index) => `${index ? "L" : "M"}${x(steps[index]).toFixed(1)} ${y(value).toFixed(1)}`).join("");
    const image = svg("svg", { width, height, tabindex: 0, role: "img",
      "aria-label": `${key} from ${number(known[0])} to ${number(known[known.length - 1])} over steps ${first} to ${last}; arrow keys read single steps` });
    for (const tick of ticks(floor, floor + span, height > 160 ? 5 : 3)) {
      image.append(svg("line", { class: "rule", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
        svg("text", { class: "axis", x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, number(tick)));
    }
    for (const tick of ticks(first, last, Math.max(2, width / 110)).filter(Number.isInteger)) {
      image.append(svg("text", { class: "axis", x: x(tick), y: height - 6, "text-anchor": "middle" }, count(tick)));
    }
    const noisy = known.length > 24;
    if (noisy) image.append(svg("path", { class: "raw", d: path(known) }));
    image.append(svg("path", { class: "line", d: path(noisy ? smooth(known) : known) }));
    if (known.length === 1) image.append(svg("circle", { class: "dot", cx: x(first), cy: y(known[0]), r: 4 }));
    const cursor = svg("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
    image.append(cursor);
    const show = (index) => {
      chosen = Math.max(0, Math.min(rows.length - 1, index));
      for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(steps[chosen]));
      cursor.setAttribute("visibility", "visible");
      readout.value = describe(rows[chosen], steps[chosen]);
    };
    image.addEventListener("pointermove", (event) => {
      const at = first + ((event.clientX - image.getBoundingClientRect().left - left) / (width - left - right)) * (last - first);
      const nearest = steps.reduce((best, step, index) => (Math.abs(step - at) < Math.abs(steps[best] - at) ? index : best), 0);
      show(nearest);
    });
    image.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1, Home: -rows.length, End: rows.length }[event.key];
      if (move === undefined) return;
      event.preventDefault();
      show(chosen + move);
    });
    return image;
  });
  return h("div", {}, host, readout);
};
