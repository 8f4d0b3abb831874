// Draws what docs/film.py measured. A posterior here is a learning phase's prior and the tuples seen since, added up
// as in Eq. 2 of the paper; docs/toy.py does the same in NumPy.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const find = id => document.getElementById(id);
const { phases, L, hidden: g } = data.sizes;
const GRID = 81, SECONDS = 4;                         // points of a map's side; a stop while playing
let timer = null, later = null;

// State, and the address ------------------------------------------------------------------------
const state = { contexts: "moving", memory: "30", paper: "printed", phase: 5, move: "back",
  tuples: "1", at: "-1.2,-0.4" };
const asked = new URLSearchParams(location.search || location.hash.slice(1));
const allowed = { contexts: /^(moving|one)$/, memory: /^(30|60|120)$/, paper: /^(printed|smallest)$/, phase: /^\d+$/,
  move: /^(before|out|carry|back)$/, tuples: /^[01]$/, at: /^-?[\d.]+,-?[\d.]+$/ };
for (const name in allowed) if (allowed[name].test(asked.get(name))) state[name] = asked.get(name);
state.phase = Math.min(Math.max(Number(state.phase), 1), phases);
document.documentElement.classList.toggle("slide", asked.get("slide") === "1");

function address() {                                  // a moment later: browsers limit how often it changes
  clearTimeout(later);
  later = setTimeout(() => {
    const query = new URLSearchParams(state);
    find("slide").href = `?${query}&slide=1`;
    if (asked.get("slide") === "1") query.set("slide", 1);
    try {
      history.replaceState(null, "", "?" + query);
    } catch {                                         // not allowed for this file: a hash always is
      history.replaceState(null, "", "#" + query);
    }
    find("link").href = location;
  }, 300);
}

// Posteriors ------------------------------------------------------------------------------------
const numbers = text => new Float64Array(Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer);
for (const kind in data.streams) data.streams[kind] = numbers(data.streams[kind]);
for (const view of Object.values(data.views)) {
  view.networks = numbers(view.networks);
  for (const name in view.priors) view.priors[name] = numbers(view.priors[name]);
}

function features(view, k, x, y) {                    // of the context (x, y), after phase k
  const phi = new Float64Array(g), first = 3 * g * k;
  for (let i = 0; i < g; i++) {
    const [wx, wy, bias] = view.networks.subarray(first + 3 * i, first + 3 * i + 3);
    phi[i] = Math.max(wx * x + wy * y + bias, 0);
  }
  return phi;
}

function posterior(view, k, name, from, to) {         // a prior, or lam I, and tuples; a row of `lower` is i(i + 1)/2
  const size = g * (g + 1) / 2, prior = view.priors[name === "full" ? "no" : name];
  const first = name === "full" ? 0 : k * (size + g);
  const lower = prior.slice(first, first + size), h = prior.slice(first + size, first + size + g);
  const tuples = data.streams[state.contexts];
  for (let t = from; t < to; t++) {
    const phi = features(view, k, tuples[3 * t], tuples[3 * t + 1]);
    for (let i = 0, at = 0; i < g; i++) {
      for (let j = 0; j <= i; j++) lower[at++] += phi[i] * phi[j];
      h[i] += phi[i] * tuples[3 * t + 2];
    }
  }
  for (let i = 0; i < g; i++) {                       // Cholesky: the precision is G G'
    for (let j = 0; j <= i; j++) {
      const at = i * (i + 1) / 2, of = j * (j + 1) / 2;
      let sum = lower[at + j];
      for (let l = 0; l < j; l++) sum -= lower[at + l] * lower[of + l];
      lower[at + j] = i === j ? Math.sqrt(sum) : sum / lower[of + j];
    }
  }
  return { lower, h: solve(lower, h) };
}

function solve(lower, x) {                            // G^-1 x
  const y = new Float64Array(g);
  for (let i = 0, at = 0; i < g; i++) {
    let sum = x[i];
    for (let j = 0; j < i; j++) sum -= lower[at++] * y[j];
    y[i] = sum / lower[at++];
  }
  return y;
}

const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);

function known(arm, phi) {                            // s(b), and the expected reward
  const half = solve(arm.lower, phi);
  return { s: Math.sqrt(dot(half, half)), mean: dot(half, arm.h) };
}

function below(z) {                                   // of a standard normal: Abramowitz and Stegun, 26.2.17
  const t = 1 / (1 + 0.2316419 * Math.abs(z));
  const powers = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  const tail = powers * Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
  return z > 0 ? 1 - tail : tail;
}

function look() {                                     // what is shown at this stop
  const view = data.views[`${state.contexts}-${state.memory}`], stop = data.moves.indexOf(state.move);
  const k = state.phase - (stop < 2), t = state.phase * L, left = phase => Math.max(phase * L - state.memory, 0);
  const to = [t, left(state.phase), left(k), t][stop];
  const names = ["no", state.paper, "carried", "full"];
  const arms = names.map(name => name === "full" ? posterior(view, k, name, 0, t) : posterior(view, k, name, left(k), to));
  return { view, k, t, names, arms, stop: 4 * (state.phase - 1) + stop, gone: left(state.phase), aside: stop === 1 || stop === 2 };
}

// The maps --------------------------------------------------------------------------------------
const [low, high] = [data.levels[0], data.levels.at(-1)].map(Math.log);
const edges = data.levels.slice(1, -1).map(level => (Math.log(level) - low) / (high - low));
const color = Array.from({ length: 256 }, (_, value) => [...data.colors[edges.filter(edge => edge < value / 255).length], 255]);

function drawMaps(shown) {
  const side = Array.from({ length: GRID }, (_, i) => data.edge * (2 * i / (GRID - 1) - 1));
  const rows = side.flatMap(y => side.map(x => features(shown.view, shown.k, x, y)));
  shown.arms.forEach((arm, panel) => {
    const shares = rows.map(phi => (Math.log(known(arm, phi).s) - low) / (high - low));
    const canvas = find(`map-${panel}`), size = Math.round(canvas.clientWidth * devicePixelRatio) || 240;
    canvas.width = canvas.height = size;
    const pen = canvas.getContext("2d"), image = pen.createImageData(size, size);
    for (let y = 0; y < size; y++) {
      for (let x = 0; x < size; x++) {                // between the four nearest points of the grid
        const right = x / (size - 1) * (GRID - 1), up = (1 - y / (size - 1)) * (GRID - 1);
        const i = Math.min(Math.floor(up), GRID - 2), j = Math.min(Math.floor(right), GRID - 2);
        const u = up - i, v = right - j, at = i * GRID + j;
        const share = (1 - u) * ((1 - v) * shares[at] + v * shares[at + 1])
          + u * ((1 - v) * shares[at + GRID] + v * shares[at + GRID + 1]);
        image.data.set(color[Math.round(255 * Math.min(Math.max(share, 0), 1))], 4 * (y * size + x));
      }
    }
    pen.putImageData(image, 0, 0);
    if (state.tuples === "1") drawTuples(pen, size, shown, shown.names[panel] === "full");
  });
}

function drawTuples(pen, size, shown, full) {
  const tuples = data.streams[state.contexts], unit = size / 240, place = x => (x / data.edge + 1) / 2 * size;
  pen.lineWidth = 0.8 * unit;
  for (let t = 0; t < shown.t; t++) {
    const x = place(tuples[3 * t]), y = place(-tuples[3 * t + 1]), r = (t < shown.gone ? 1.7 : 4.4) * unit;
    pen.beginPath();
    if (t < shown.gone) pen.arc(x, y, r, 0, 2 * Math.PI);
    else [[0, -r], [r, 0], [0, r], [-r, 0], [0, -r]].forEach(([dx, dy]) => pen.lineTo(x + dx, y + dy));
    pen.fillStyle = t < shown.gone ? "#fff" : shown.aside && !full ? "#fff6" : "#000";  // set aside: nearly empty
    pen.strokeStyle = t < shown.gone || shown.aside && !full ? "#000" : "#fff";
    pen.fill();
    pen.stroke();
  }
}

// Numbers ---------------------------------------------------------------------------------------
const times = x => x === null ? "none yet" : "× " + Number(x.toPrecision(2));

function drawNumbers(shown) {
  shown.names.forEach((name, panel) => {
    const [gone, away] = shown.view.ratio[shown.stop][name];
    find(`gone-${panel}`).textContent = find(`one-${panel}`).textContent = times(gone);
    find(`away-${panel}`).textContent = times(away);
    find(`map-${panel}`).setAttribute("aria-label",
      `Uncertainty s(b), ${data.panels[name]}, phase ${state.phase}, ${state.move}. Arrow keys move the cross.`);
  });
}

function drawCross(shown) {                           // what Thompson sampling would do at one context
  const [x, y] = state.at.split(",").map(Number), phi = features(shown.view, shown.k, x, y);
  const pays = Math.sin(2 * x) + y, nu = shown.view.nu[shown.stop];
  const seen = shown.arms.map(arm => known(arm, phi)), right = seen.at(-1).s;
  find("panels").style.setProperty("--x", (x / data.edge + 1) / 2);
  find("panels").style.setProperty("--y", (1 - y / data.edge) / 2);
  find("cross").textContent = (`At the cross, b = (${x.toFixed(1)}, ${y.toFixed(1)}), this arm pays ${pays.toFixed(2)}; `
    + `a safe arm pays ${data.rival}. Samples above ${data.rival} play this arm.`).replaceAll("-", "−");
  seen.forEach(({ s, mean }, panel) => {
    const spread = s * nu[shown.names[panel]], share = below((mean - data.rival) / spread);
    const place = value => 100 * Math.min(Math.max((value + 3) / 6, 0), 1);
    find(`s-${panel}`).textContent = `${s.toPrecision(3)} (${times(s / right)})`;
    find(`played-${panel}`).textContent = `${(100 * share).toFixed(share > 0.001 && share < 0.999 ? 1 : 0)} %`;
    find(`strip-${panel}`).replaceChildren(
      svg("line", { x1: 0, x2: 100, y1: 10, y2: 10, class: "grid" }),
      svg("line", { x1: place(data.rival), x2: place(data.rival), y1: 2, y2: 18, class: "rival" }),
      svg("rect", { x: place(mean - 2 * spread), y: 6, width: place(mean + 2 * spread) - place(mean - 2 * spread) + 0.6,
        height: 8, class: `band p${panel}` }),
      svg("rect", { x: place(mean) - 0.4, y: 3, width: 0.8, height: 14, class: `dot p${panel}` }),
      svg("path", { d: `M${place(pays)} 12l1.8 8h-3.6z`, class: "pays" }));
  });
}

// Regret ----------------------------------------------------------------------------------------
const most = 1.02 * Math.max(...Object.values(data.views).flatMap(view => Object.keys(view.regret).flatMap(
  name => view.regret[name].map((value, i) => value + view.error[name][i]))));

function svg(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function drawRegret(shown) {
  const plot = find("regret"), width = Math.max(plot.clientWidth, 280), height = Math.max(plot.clientHeight, 200);
  const font = parseFloat(getComputedStyle(plot).fontSize), label = 13 * font, bottom = height - 3.2 * font;
  const x = t => 3 * font + t / (phases * L) * (width - 3 * font - label);
  const y = value => bottom - value / most * (bottom - font);
  const step = [1, 2, 5, 10, 20, 50, 100].find(size => most / size <= 6), parts = [];
  for (let value = 0; value <= most; value += step) {
    parts.push(svg("line", { x1: x(0), x2: x(phases * L), y1: y(value), y2: y(value), class: "grid" }));
    parts.push(svg("text", { x: x(0) - 6, y: y(value) + font / 3, "text-anchor": "end" }, value));
  }
  for (let phase = 1; phase <= phases; phase++) {
    parts.push(svg("text", { x: x(phase * L), y: bottom + 1.3 * font, "text-anchor": "middle" }, phase));
  }
  parts.push(svg("text", { x: x(phases * L / 2), y: bottom + 2.7 * font, "text-anchor": "middle" }, `learning phase, every ${L} steps`));
  const now = shown.t / data.every, ends = [];
  shown.names.forEach((name, panel) => {
    const mean = [0, ...shown.view.regret[name].slice(0, now)], error = [0, ...shown.view.error[name].slice(0, now)];
    const points = sign => mean.map((value, k) => `${x(k * data.every)},${y(value + sign * error[k])}`);
    parts.push(svg("polygon", { points: [...points(1), ...points(-1).reverse()].join(" "), class: `band p${panel}` }));
    parts.push(svg("polyline", { points: points(0).join(" "), class: `line p${panel}` }));
    ends.push({ panel, at: y(mean.at(-1)), text: `${data.panels[name]} ${mean.at(-1).toFixed(0)} ± ${error.at(-1).toFixed(0)}` });
  });
  ends.sort((one, other) => other.at - one.at);       // from below; labels do not overlap
  ends.forEach((end, i) => { end.y = Math.min(end.at, (ends[i - 1]?.y ?? bottom + 1.2 * font) - 1.15 * font); });
  for (const { panel, y, text } of ends) {
    parts.push(svg("text", { x: x(shown.t) + 6, y: y + font / 3, class: `end p${panel}` }, text));
  }
  plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
  plot.replaceChildren(...parts);
}

// Events ----------------------------------------------------------------------------------------
function show() {
  const shown = look();
  find("phase").value = state.phase;
  find("phase").setAttribute("aria-valuetext", `phase ${state.phase} of ${phases}`);
  find("count").textContent = `${state.phase} of ${phases}`;
  for (const name of ["contexts", "memory", "paper", "move"]) {
    document.querySelector(`input[name=${name}][value="${state[name]}"]`).checked = true;
  }
  find("tuples").checked = state.tuples === "1";
  const story = data.story[state.contexts], chapter = Object.keys(story).filter(phase => phase <= state.phase).at(-1);
  find("story").textContent = story[chapter];
  find("move").textContent = data.words[state.move];
  drawMaps(shown);
  drawNumbers(shown);
  drawCross(shown);
  drawRegret(shown);
  address();
}

function step(by) {                                   // through the moves of all phases
  const stop = 4 * (state.phase - 1) + data.moves.indexOf(state.move) + by;
  const inside = Math.min(Math.max(stop, 0), 4 * phases - 1);
  state.phase = 1 + Math.floor(inside / 4);
  state.move = data.moves[inside % 4];
  show();
  return stop === inside;
}

function pause() {
  clearInterval(timer);
  timer = null;
  find("play").textContent = "▶ Play";
  find("said").setAttribute("aria-live", "polite");
}

function play() {
  if (timer) return pause();
  find("play").textContent = "❚❚ Pause";
  find("said").setAttribute("aria-live", "off");      // a reader could not follow
  if (!step(1)) step(-4 * phases);
  timer = setInterval(() => { if (!step(1)) pause(); }, 1000 * SECONDS);
}

function cross(x, y) {
  const inside = value => Math.min(Math.max(value, -data.edge), data.edge).toFixed(2);
  state.at = `${Number(inside(x))},${Number(inside(y))}`;
  drawCross(look());
  address();
}

find("play").addEventListener("click", play);
find("phase").addEventListener("input", () => { pause(); state.phase = Number(find("phase").value); show(); });
find("tuples").addEventListener("change", () => { state.tuples = find("tuples").checked ? "1" : "0"; show(); });
for (const radio of document.querySelectorAll("input[type=radio]")) {
  radio.addEventListener("change", () => { pause(); state[radio.name] = radio.value; show(); });
}
find("link").addEventListener("click", event => {
  if (!navigator.clipboard) return;                   // then it is a link like any other
  event.preventDefault();
  navigator.clipboard.writeText(find("link").href).then(() => { find("copied").textContent = "copied"; });
});
for (const canvas of document.querySelectorAll("canvas")) {
  const point = event => {
    if (event.type === "pointermove" && event.pointerType !== "mouse" && !event.buttons) return;
    const box = canvas.getBoundingClientRect();
    cross(data.edge * (2 * (event.clientX - box.left) / box.width - 1), data.edge * (1 - 2 * (event.clientY - box.top) / box.height));
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
}
find("film").addEventListener("click", event => {     // a pointer leaves the keys to the film
  if (event.detail > 0) setTimeout(() => document.activeElement.blur());
});
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const [x, y] = state.at.split(",").map(Number), on = event.target, canvas = on.closest("canvas");
  const moves = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };
  const stops = { ArrowLeft: -1, ArrowRight: 1, Home: -4 * phases, End: 4 * phases };
  if (canvas && event.key in moves) {
    cross(x + moves[event.key][0], y + moves[event.key][1]);
  } else if (event.key in stops && !on.closest("[type=radio], [type=range]")) {
    pause();
    step(stops[event.key]);
  } else if (event.key === " " && !on.closest("button, a, summary, [type=radio], [type=checkbox]")) {
    play();
  } else {
    return;
  }
  event.preventDefault();
});
addEventListener("resize", show);
find("film").hidden = false;
show();
