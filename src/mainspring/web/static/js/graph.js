// Draws the graph of a workflow from data-graph, and again whenever that changes: places are computed once for
// a shape, so that a step that moves on only changes its colour. Everything is set as text, nothing as markup.
const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 168, HEIGHT = 52, MARGIN = 14;
// One sign for each state: colour is never alone.
const SIGNS = {
  succeeded: "M3 7l3 3 5-6", failed: "M4 4l6 6M10 4l-6 6", cancelled: "M4 7h6", skipped: "M3 4l4 3-4 3M8 4l4 3-4 3",
  running: "M5 3.5l5.500 3.500-5.500 3.500z", ending: "M5 3.5l5.500 3.500-5.500 3.500z", ready: "M7 4v3l2 2", delayed: "M7 4v3l2 2", waiting: "M4 7h.01M7 7h.01M10 7h.01",
};
let shape = null, places = null;

function make(name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function layout(picture) {
  const now = JSON.stringify([picture.nodes.map((each) => each.name), picture.lines]);
  if (now === shape) return places;
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 34, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  picture.nodes.forEach((each, at) => graph.setNode(`${at}`, { width: WIDTH, height: HEIGHT }));
  const at = new Map(picture.nodes.map((each, place) => [each.name, `${place}`]));
  for (const each of picture.lines) graph.setEdge(at.get(each.source), at.get(each.target));
  dagre.layout(graph);
  shape = now;
  places = {
    size: graph.graph(),
    nodes: picture.nodes.map((each, place) => graph.node(`${place}`)),
    lines: picture.lines.map((each) => route(graph, at.get(each.source), at.get(each.target))),
  };
  return places;
}

// From the middle of a right side to the middle of a left one, round whatever is in between.
function route(graph, source, target) {
  const from = graph.node(source), to = graph.node(target);
  const near = to.x - from.x < 1.6 * WIDTH; // nothing is in between
  const bends = near ? [] : graph.edge(source, target).points.slice(1, -1).filter((each) => each.x > from.x + WIDTH / 2 && each.x < to.x - WIDTH / 2);
  return [{ x: from.x + WIDTH / 2, y: from.y }, ...bends, { x: to.x - WIDTH / 2, y: to.y }];
}

function path(points) {
  const [first, ...rest] = points;
  let d = `M${first.x},${first.y}`;
  for (let at = 0; at < rest.length; at++) {
    const here = rest[at], before = at ? rest[at - 1] : first, middle = (before.x + here.x) / 2;
    d += ` C${middle},${before.y} ${middle},${here.y} ${here.x},${here.y}`;
  }
  return d;
}

function drawNode(each, place, box) {
  const link = make("a", { href: `${box.dataset.page}?step=${encodeURIComponent(each.name)}#step`, class: "node", "data-state": each.state, "data-kind": each.kind, "data-name": each.name, "aria-label": each.label });
  const group = make("g", { transform: `translate(${place.x - WIDTH / 2},${place.y - HEIGHT / 2})` });
  link.append(group);
  group.append(make("title", {}, each.label));
  if (each.kind === "map") group.append(make("rect", { class: "node__back", x: 5, y: -5, width: WIDTH, height: HEIGHT, rx: 8 }));
  group.append(make("rect", { class: "node__box", width: WIDTH, height: HEIGHT, rx: 8 }));
  const sign = make("g", { class: "node__sign", transform: `translate(10,${HEIGHT / 2 - 10})` });
  sign.append(make("circle", { cx: 10, cy: 10, r: 10 }), make("path", { d: SIGNS[each.state] ?? SIGNS.waiting, transform: "translate(3,3)" }));
  group.append(sign);
  group.append(make("text", { class: "node__name", x: 38, y: 22 }, cut(each.title, 17)));
  group.append(make("text", { class: "node__line", x: 38, y: 38 }, cut(each.line, 21)));
  if (each.done !== null) {
    group.append(make("rect", { class: "node__rail", x: 38, y: 43, width: WIDTH - 50, height: 3, rx: 1.5 }));
    group.append(make("rect", { class: "node__done", x: 38, y: 43, width: (WIDTH - 50) * each.done, height: 3, rx: 1.5 }));
    group.append(make("rect", { class: "node__lost", x: 38 + (WIDTH - 50) * (each.done - each.lost), y: 43, width: (WIDTH - 50) * each.lost, height: 3, rx: 1.5 }));
  }
  return link;
}

function cut(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

export function draw(box) {
  const picture = JSON.parse(box.dataset.graph);
  const laid = layout(picture);
  const focused = document.activeElement?.dataset?.name;
  const { width, height } = laid.size;
  const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Steps" });
  const arrow = make("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
  arrow.append(make("path", { d: "M0 0L8 4L0 8z", class: "line__head" }));
  const defs = make("defs");
  defs.append(arrow);
  svg.append(defs);
  const states = new Map(picture.nodes.map((each) => [each.name, each.state]));
  picture.lines.forEach((each, at) => {
    svg.append(make("path", { d: path(laid.lines[at]), class: "line", "data-when": each.when, "data-from": states.get(each.source), "marker-end": "url(#arrow)" }));
  });
  picture.nodes.forEach((each, at) => svg.append(drawNode(each, laid.nodes[at], box)));
  box.replaceChildren(svg);
  box.dataset.drawn = picture.nodes.map((each) => each.state).join(" ");
  if (focused) box.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus();
}

function all() {
  document.querySelectorAll("#graph[data-graph]").forEach(draw);
}

document.addEventListener("click", (event) => {
  const node = event.target.closest?.("#graph a.node");
  if (!node || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const box = node.closest("#graph");
  htmx.ajax("GET", `${box.dataset.step}?step=${encodeURIComponent(node.dataset.name)}`, { target: "#step" });
  document.getElementById("step")?.scrollIntoView({ block: "nearest" });
});

new MutationObserver((changes) => {
  if (changes.some((each) => each.target.id === "graph")) all();
}).observe(document.body, { subtree: true, attributes: true, attributeFilter: ["data-graph"] });
document.addEventListener("htmx:after:swap", () => {
  const box = document.getElementById("graph");
  if (box && !box.firstElementChild) all();
});
all();
