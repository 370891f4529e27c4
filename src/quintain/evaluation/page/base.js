"use strict";
// Elements, numbers and words. Text reaches the page as text nodes only, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);

const fill = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
};
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const none = "–";
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const group = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
const count = (value) => (isNumber(value) ? group(String(Math.round(value))) : none);
const share = (value) => (isNumber(value) ? value.toFixed(2) : none);
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
const percent = (value) => (isNumber(value) ? `${(100 * value).toFixed(value && Math.abs(value) < 0.1 ? 1 : 0)} %` : none);
const number = (value) => {
  if (!isNumber(value)) return none;
  const size = Math.abs(value);
  if (size && (size < 0.001 || size >= 1e7)) return value.toExponential(1);
  if (size >= 1000) return count(value);
  return String(Number(value.toPrecision(3)));
};
const duration = (seconds) => {
  if (!isNumber(seconds)) return none;
  if (seconds < 60) return `${number(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
};
const plural = (amount, one, many) => `${count(amount)} ${amount === 1 ? one : many || one + "s"}`;
const range = (estimate) => `[${share(estimate.low)}, ${share(estimate.high)}]`;
const pValue = (p) => (p < 0.001 ? "p < 0.001" : `p = ${p.toFixed(3)}`);

const table = (label, head, rows) =>
  h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    h("table", {}, h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, cell)))), h("tbody", {}, rows)));

const section = (id, title, note, ...children) =>
  h("section", { id, "aria-labelledby": `${id}-title`, "data-title": title },
    h("h2", { id: `${id}-title` }, title), note && h("p", { class: "note wide" }, note), children);

const evaluated = data.stages.filter((stage) => stage.evaluation && stage.evaluation.overall.pass1);
