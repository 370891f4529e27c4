// What came from what: pools, the base model, files and stages, as a small graph from left to right.

const NODE = { width: 116, height: 34, right: 28, down: 14 };

const lineageNodes = (stages) => {
  const nodes = new Map();
  for (const stage of stages) {
    for (const one of stage.inputs) {
      const key = `${one.kind} ${one.name}`;
      if (!nodes.has(key)) nodes.set(key, { key, name: one.name, kind: one.kind, from: [], column: 0 });
    }
    const from = stage.inputs.map((one) => nodes.get(`${one.kind} ${one.name}`));
    const column = 1 + Math.max(0, ...from.filter((one) => one.kind === "stage").map((one) => one.column));
    const key = `stage ${stage.name}`;
    nodes.set(key, Object.assign(nodes.get(key) || {}, { key, name: stage.name, kind: "stage", detail: stage.kind, from, column }));
  }
  const all = [...nodes.values()];
  for (const one of all.filter((node) => node.kind !== "stage")) {
    one.column = Math.min(...all.filter((node) => node.from.includes(one)).map((node) => node.column)) - 1;
  }
  return all;
};

// Rows within a column follow the rows of what they come from, so that lines seldom cross.
const placeNodes = (nodes) => {
  const columns = [];
  for (const one of nodes) (columns[one.column] = columns[one.column] || []).push(one);
  columns.forEach((column) => {
    const pull = (one) => (one.from.length ? one.from.reduce((sum, from) => sum + (from.row || 0), 0) / one.from.length : Infinity);
    column.sort((a, b) => pull(a) - pull(b)).forEach((one, row) => (one.row = row));
  });
  for (const one of nodes) {
    one.x = 1 + one.column * (NODE.width + NODE.right);
    one.y = 1 + one.row * (NODE.height + NODE.down);
  }
  return { columns: columns.length, rows: Math.max(...columns.filter(Boolean).map((column) => column.length)) };
};

const lineageEdge = (from, to) => {
  const x1 = from.x + NODE.width, y1 = from.y + NODE.height / 2, x2 = to.x - 6, y2 = to.y + NODE.height / 2, bend = (x2 - x1) / 2;
  return svg("path", { class: "edge", "marker-end": "url(#arrow)", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
};

const lineageNode = (one) => {
  const room = Math.floor((NODE.width - 16) / 7);
  const name = one.name.length > room ? one.name.slice(0, room - 1) + "…" : one.name;
  return svg("g", { class: `node ${one.kind} ${one.detail || ""}` },
    svg("title", {}, `${one.detail || one.kind} ${one.name}`),
    svg("rect", { x: one.x, y: one.y, width: NODE.width, height: NODE.height, rx: 7 }),
    svg("text", { x: one.x + 9, y: one.y + 14 }, name),
    svg("text", { class: "axis", x: one.x + 9, y: one.y + 28 }, one.detail || one.kind));
};

const lineage = () => {
  if (data.stages.every((stage) => !stage.inputs.length)) return null;
  const nodes = lineageNodes(data.stages), size = placeNodes(nodes);
  const words = nodes.filter((one) => one.from.length).map((one) => `${one.name} from ${one.from.map((from) => from.name).join(", ")}`);
  const image = svg("svg", { role: "img", "aria-label": `Lineage: ${words.join("; ")}`,
    width: size.columns * (NODE.width + NODE.right) - NODE.right + 2, height: size.rows * (NODE.height + NODE.down) },
    svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 6 6", refX: 1, refY: 3, markerWidth: 6, markerHeight: 6, orient: "auto" },
      svg("path", { class: "tip", d: "M0 0L6 3L0 6z" }))),
    nodes.flatMap((one) => one.from.map((from) => lineageEdge(from, one))), nodes.map(lineageNode));
  return h("div", { class: "card" }, h("h3", {}, "Lineage"), h("p", { class: "note" }, "What each stage was made from."),
    h("div", { class: "scroll lineage", tabindex: 0, role: "region", "aria-label": "Lineage" }, image));
};
