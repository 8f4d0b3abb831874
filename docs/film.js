// Draws what docs/film.py computed: no number is made here.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const find = id => document.getElementById(id);
const SIZE = 240;                                     // pixels of a map
const asked = new URLSearchParams(location.search);
const state = { contexts: "one", memory: "60", phase: 1 };
const PAUSE = matchMedia("(prefers-reduced-motion: reduce)").matches ? 5000 : 1500;  // milliseconds of a phase
let timer = null;

for (const name of ["contexts", "memory"]) {
  const radio = document.querySelector(`input[name=${name}][value="${CSS.escape(asked.get(name) ?? "")}"]`);
  if (radio) state[name] = radio.value;
}
if (/^\d+$/.test(asked.get("phase") ?? "")) {
  state.phase = Math.min(Math.max(Number(asked.get("phase")), 1), data.phases);
}

function bytes(text) {
  return Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
}
for (const view of Object.values(data.views)) {
  view.maps = bytes(view.maps);
  view.contexts = bytes(view.contexts);
}

// The maps --------------------------------------------------------------------------------------
const [low, high] = [data.levels[0], data.levels.at(-1)].map(Math.log);
const edges = data.levels.slice(1, -1).map(level => 255 * (Math.log(level) - low) / (high - low));
const color = Array.from({ length: 256 }, (_, value) => data.colors[edges.filter(edge => edge < value).length]);

function drawMap(context, view, panel) {
  const n = data.grid, first = ((state.phase - 1) * data.panels.length + panel) * n * n;
  const at = (row, column) => view.maps[first + row * n + column];
  const image = context.createImageData(SIZE, SIZE);
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {                  // between the four nearest points of the grid
      const right = x / (SIZE - 1) * (n - 1), up = (1 - y / (SIZE - 1)) * (n - 1);
      const i = Math.min(Math.floor(up), n - 2), j = Math.min(Math.floor(right), n - 2);
      const u = up - i, v = right - j;
      const value = (1 - u) * ((1 - v) * at(i, j) + v * at(i, j + 1))
        + u * ((1 - v) * at(i + 1, j) + v * at(i + 1, j + 1));
      image.data.set(color[Math.round(value)], 4 * (y * SIZE + x));
    }
  }
  context.putImageData(image, 0, 0);
}

function drawTuples(context, view) {
  const place = k => [view.contexts[2 * k] / 255 * SIZE, (1 - view.contexts[2 * k + 1] / 255) * SIZE];
  const forgotten = view.forgotten[state.phase - 1];
  context.lineWidth = 0.6;
  for (let k = 0; k < state.phase * data.L; k++) {
    const [x, y] = place(k);
    context.beginPath();
    if (k < forgotten) {
      context.arc(x, y, 1.7, 0, 2 * Math.PI);
    } else {
      context.moveTo(x, y - 4.2);
      [[4.2, 0], [0, 4.2], [-4.2, 0]].forEach(([dx, dy]) => context.lineTo(x + dx, y + dy));
      context.closePath();
    }
    context.fillStyle = k < forgotten ? "#fff" : "#000";
    context.strokeStyle = k < forgotten ? "#000" : "#fff";
    context.fill();
    context.stroke();
  }
}

// Numbers ---------------------------------------------------------------------------------------
function signed(x) {
  if (x === null) return "none yet";
  return (x > 0 ? "+" : x < 0 ? "−" : "") + Math.abs(x).toFixed(2);
}

function drawPanels(view) {
  const k = state.phase - 1;
  data.panels.forEach((name, panel) => {
    const canvas = find(`map-${panel}`), context = canvas.getContext("2d");
    drawMap(context, view, panel);
    if (find("tuples").checked) drawTuples(context, view);
    find(`ratio-${panel}`).textContent = signed(view.ratio[k][panel]);
    find(`away-${panel}`).textContent = signed(view.away[k][panel]);
    find(`forgotten-${panel}`).textContent = name === "full memory" ? "0" : view.forgotten[k];
    canvas.setAttribute("aria-label", `Map of the uncertainty s(b), ${name}, phase ${state.phase}`);
  });
}

// Regret ----------------------------------------------------------------------------------------
const PLOT = { left: 40, right: 12, top: 12, bottom: 220, height: 260 };

function svg(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function drawRegret(view) {
  const steps = data.phases * data.L, most = Math.max(...view.regret.flat()) * 1.05;
  const step = [5, 10, 20, 25, 50, 100, 200].find(size => most / size <= 5);
  const width = Math.max(find("regret").clientWidth, 280), right = width - PLOT.right;
  const x = t => PLOT.left + t / steps * (right - PLOT.left);
  const y = value => PLOT.bottom - value / most * (PLOT.bottom - PLOT.top);
  const parts = [];
  for (let value = 0; value <= most; value += step) {
    parts.push(svg("line", { x1: PLOT.left, x2: right, y1: y(value), y2: y(value), class: "grid" }));
    parts.push(svg("text", { x: PLOT.left - 6, y: y(value) + 4, "text-anchor": "end" }, value));
  }
  for (let phase = 1; phase <= data.phases; phase++) {
    parts.push(svg("text", { x: x(phase * data.L), y: PLOT.bottom + 16, "text-anchor": "middle" }, phase));
  }
  parts.push(svg("text", { x: (PLOT.left + right) / 2, y: PLOT.bottom + 34, "text-anchor": "middle" },
    `learning phase, one after every ${data.L} steps`));
  parts.push(svg("line", { x1: x(state.phase * data.L), x2: x(state.phase * data.L), y1: PLOT.top, y2: PLOT.bottom,
    class: "cursor" }));
  data.panels.forEach((name, panel) => {
    const curve = view.regret[panel].map((value, k) => `${x((k + 1) * data.every)},${y(value)}`);
    parts.push(svg("polyline", { points: [`${x(0)},${y(0)}`, ...curve].join(" "), class: `line line-${panel}` }));
    const now = state.phase * data.L / data.every - 1;
    const value = view.regret[panel][now].toFixed(1), error = view.error[panel][now].toFixed(1);
    find(`regret-${panel}`).textContent = `${value} ± ${error}`;
    parts.push(svg("circle", { cx: x(state.phase * data.L), cy: y(view.regret[panel][now]), r: 4,
      class: `dot-${panel}` }));
  });
  find("regret").setAttribute("viewBox", `0 0 ${width} ${PLOT.height}`);
  find("regret").replaceChildren(...parts);
}

// State -----------------------------------------------------------------------------------------
function show() {
  const view = data.views[`${state.contexts}-${state.memory}`];
  find("phase").value = state.phase;
  find("phase").setAttribute("aria-valuetext", `phase ${state.phase} of ${data.phases}`);
  find("count").textContent = `${state.phase} of ${data.phases}, ${state.phase * data.L} tuples`;
  for (const name of ["contexts", "memory"]) {
    document.querySelector(`input[name=${name}][value="${state[name]}"]`).checked = true;
  }
  find("sentence").textContent = view.sentence[state.phase - 1];
  find("link").href = "?" + new URLSearchParams(state);
  drawPanels(view);
  drawRegret(view);
}

function go(phase) {
  state.phase = Math.min(Math.max(phase, 1), data.phases);
  show();
}

function stop() {
  clearInterval(timer);
  timer = null;
  find("play").textContent = "▶ Play";
  find("sentence").setAttribute("aria-live", "polite");
}

function play() {
  if (timer) return stop();
  find("play").textContent = "❚❚ Pause";
  find("sentence").setAttribute("aria-live", "off");  // a reader could not follow
  go(state.phase === data.phases ? 1 : state.phase + 1);
  timer = setInterval(() => {
    if (state.phase === data.phases - 1) stop();
    go(state.phase + 1);
  }, PAUSE);
}

find("play").addEventListener("click", play);
find("phase").addEventListener("input", () => { stop(); go(Number(find("phase").value)); });
find("tuples").addEventListener("change", show);
for (const radio of document.querySelectorAll("input[type=radio]")) {
  radio.addEventListener("change", () => { state[radio.name] = radio.value; show(); });
}
find("controls").addEventListener("click", event => { // a pointer leaves the keys to the film
  if (event.detail > 0) setTimeout(() => document.activeElement.blur());
});
document.addEventListener("keydown", event => {
  const steps = { ArrowLeft: state.phase - 1, ArrowRight: state.phase + 1, Home: 1, End: data.phases };
  const held = event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;
  if (!held && event.key in steps && !event.target.closest("[type=radio], [type=range]")) {
    stop();
    go(steps[event.key]);
    event.preventDefault();
  }
  if (!held && event.key === " " && !event.target.closest("button, a, summary, [type=radio], [type=checkbox]")) {
    play();
    event.preventDefault();
  }
});
addEventListener("resize", () => drawRegret(data.views[`${state.contexts}-${state.memory}`]));
find("film").hidden = false;
show();
