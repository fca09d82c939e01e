// Charts: <figure data-chart> holds its figures as JSON, a place to draw in, and a table for those who read.
/* global uPlot */

function colour(name) {
  // A variable may be a pair for light and dark: only an element knows which of them counts.
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function faded(rgb) {
  return rgb.replace(/^rgb\(([^)]*)\)$/, "rgba($1, 0.12)");
}

function amount(unit, value) {
  if (value === null || value === undefined) return "–";
  if (unit !== "seconds") return value >= 10000 ? `${Math.round(value / 1000)}k` : String(value);
  if (value === 0) return "0";
  if (value < 1) return `${Math.round(value * 1000)}ms`;
  return value < 60 ? `${Math.round(value * 10) / 10}s` : `${Math.round(value / 6) / 10}m`;
}

function figures(figure) {
  return JSON.parse(figure.querySelector("script[type='application/json']").textContent);
}

function options(figure, data) {
  const muted = colour("--muted");
  const grid = { stroke: colour("--line"), width: 1 };
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  const place = figure.querySelector(".chart__plot");
  return {
    width: place.clientWidth,
    height: 150,
    padding: [10, 8, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 5 } },
    legend: { show: false },
    scales: { x: { time: true }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    axes: [
      { stroke: muted, font, grid: { show: false }, ticks: { show: false }, size: 24, values: (_, all) => all.map((at) => new Date(at * 1000).toISOString().slice(11, 16)) },
      { stroke: muted, font, grid, ticks: { show: false }, size: 44, space: 36, values: (_, all) => all.map((each) => amount(data.unit, each)) },
    ],
    series: [{}, ...data.lines.map((line) => {
      const stroke = colour(line.tone);
      return { label: line.name, stroke, width: 1.75, spanGaps: true, points: { show: false }, fill: data.lines.length === 1 ? faded(stroke) : undefined };
    })],
    hooks: { setCursor: [(plot) => tell(figure, data, plot.cursor.idx)] },
  };
}

function tell(figure, data, place) {
  const said = figure.querySelector("[data-told]");
  if (place === null || place === undefined) {
    said.textContent = "";
    return;
  }
  const moment = new Date(figure.data.at[place] * 1000).toISOString().slice(11, 16);
  const values = figure.data.lines.map((line) => `${line.name} ${amount(data.unit, line.values[place])}`);
  said.textContent = `${moment}: ${values.join(", ")}`;
}

function columns(data) {
  return [data.at, ...data.lines.map((line) => line.values)];
}

function draw(figure, anew) {
  figure.data = figures(figure);
  if (figure.plot && !anew) return figure.plot.setData(columns(figure.data));
  figure.plot?.destroy();
  figure.plot = new uPlot(options(figure, figure.data), columns(figure.data), figure.querySelector(".chart__plot"));
}

function drawAll(anew) {
  for (const figure of document.querySelectorAll("figure[data-chart]")) draw(figure, anew);
}

drawAll(true);
document.addEventListener("htmx:after:swap", () => drawAll(false));
document.addEventListener("theme", () => drawAll(true));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(true));
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  drawAll(true);
});
