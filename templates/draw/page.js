"use strict";
const fabric = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const picture = byId("picture"), overlay = byId("overlay"), tip = byId("tip");
const order = fabric.names.length;
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const words = (text) => new Uint16Array(bytes(text).buffer);
const next = (fabric.wide ? words : bytes)(fabric.next), stopped = fabric.wide ? 65535 : 255;
const shared = bytes(fabric.alternates);
const egress = words(fabric.egress);
let chosen = [], hovered = -1;

// What the tables say.

function step(at, to) {
  const link = next[at * order + to];
  return link === stopped ? -1 : fabric.links[at][link];
}

function walk(from, to) {
  const path = [from];
  while (path[path.length - 1] !== to) {
    const there = step(path[path.length - 1], to);
    if (there < 0 || path.length > order) return null;
    path.push(there);
  }
  return path;
}

function compiledAlternates(from, to) {
  const width = shared.length / order / fabric.classes;
  const start = (from * fabric.classes + egress[from * order + to]) * width;
  return fabric.links[from].filter((_, link) => shared[start + (link >> 3)] >> (link & 7) & 1);
}

// Each alternate goes over another neighbour and on along that one's minimal path.
function alternates(from, to) {
  const first = step(from, to);
  const over = shared.length ? compiledAlternates(from, to)
    : fabric.links[from].filter((v) => v !== first);
  return over.map((v) => walk(v, to)).filter((path) => path && !path.includes(from))
    .map((path) => [from, ...path]);
}

function portName(from, to) {
  return fabric.portNames[fabric.ports[from][fabric.links[from].indexOf(to)]];
}

const collator = new Intl.Collator("en", { numeric: true });

// The neighbours of a node in the order of its ports: eth2 before eth10.
function byPort(v) {
  return fabric.links[v].slice().sort((a, b) => collator.compare(portName(v, a), portName(v, b)));
}

function find(word) {
  const named = fabric.names.indexOf(word);
  if (named >= 0) return named;
  return /^[0-9]+$/.test(word) && Number(word) < order ? Number(word) : -1;
}

// Drawing.

function element(name, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.appendChild(made);
  return made;
}

function radius() {
  return picture.querySelector("defs rect").height.baseVal.value / 2;
}

// A straight line from u to v, or a bow where it would run through other nodes.
function segment(u, v) {
  const x = fabric.x[u], y = fabric.y[u], dx = fabric.x[v] - x, dy = fabric.y[v] - y;
  const length = Math.hypot(dx, dy), r = radius();
  const between = fabric.x.some((there, w) => {
    const along = ((there - x) * dx + (fabric.y[w] - y) * dy) / length;
    const beside = ((there - x) * dy - (fabric.y[w] - y) * dx) / length;
    return w !== u && w !== v && along > 0 && along < length && Math.abs(beside) < r;
  });
  if (!between) return "L" + fabric.x[v] + " " + fabric.y[v];
  const bow = Math.max(6 * r, length / 5) / length;
  const over = [x + dx / 2 + bow * dy, y + dy / 2 - bow * dx].map((at) => at.toFixed(1));
  return "Q" + over.join(" ") + " " + fabric.x[v] + " " + fabric.y[v];
}

function line(path, kind) {
  const start = "M" + fabric.x[path[0]] + " " + fabric.y[path[0]];
  const d = start + path.slice(1).map((v, i) => segment(path[i], v)).join("");
  element("path", { class: kind, d: d, "data-path": path.join(" ") }, overlay);
}

function ring(v, kind) {
  const at = { class: kind, cx: fabric.x[v], cy: fabric.y[v], r: radius() + 4 };
  element("circle", at, overlay);
}

function add(parent, tag, text, kind) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  if (kind) made.className = kind;
  parent.appendChild(made);
  return made;
}

function pathEntry(parent, tag, path) {
  const entry = add(parent, tag, path.map((v) => fabric.names[v]).join(" – "), "path");
  entry.tabIndex = 0;
  const show = () => line(path, "shown");
  const hide = () => overlay.querySelectorAll(".shown").forEach((each) => each.remove());
  entry.addEventListener("mouseenter", show);
  entry.addEventListener("focus", show);
  entry.addEventListener("mouseleave", hide);
  entry.addEventListener("blur", hide);
}

function hops(parent, path) {
  const list = add(parent, "ol");
  for (let i = 1; i < path.length; i++) {
    const [u, v] = [path[i - 1], path[i]];
    add(list, "li", fabric.names[u] + ":" + portName(u, v) + " → " + fabric.names[v] + ":" + portName(v, u));
  }
}

function describePaths(minimal, others) {
  const section = byId("paths");
  section.replaceChildren();
  if (chosen.length < 2) return;
  if (!minimal) {
    add(section, "p", "The tables have no path between these two.");
    return;
  }
  const links = minimal.length - 1;
  add(section, "h2", "Minimal path: " + links + (links === 1 ? " link" : " links"), "minimal-key");
  pathEntry(section, "p", minimal);
  hops(section, minimal);
  const what = shared.length ? "Alternates in the tables" : "Alternates that these tables do not use";
  add(section, "h2", what + ": " + others.length, "alternate-key");
  const list = add(section, "ol", "", "alternates");
  others.forEach((path) => pathEntry(list, "li", path));
}

function describeNode(v) {
  const section = byId("node");
  section.replaceChildren();
  if (v < 0) return;
  add(section, "h2", "Node " + fabric.names[v]);
  const table = add(section, "table");
  table.setAttribute("aria-label", "Node " + fabric.names[v]);
  const row = (key, value) => {
    const made = add(table, "tr");
    add(made, "th", key).scope = "row";
    add(made, "td", value);
  };
  row("vertex", String(v));
  row("kind", fabric.kinds[fabric.kind[v]]);
  row("coordinates", "(" + fabric.coordinates[v].join(", ") + ")");
  row(fabric.noun, fabric.racks[fabric.rack[v]]);
  if (fabric.sites.length) row("stands in", fabric.sites[v]);
  byPort(v).forEach((w) => row(portName(v, w), fabric.names[w] + ":" + portName(w, v)));
  fabric.hosts[v].forEach((host) => row("host", host));
}

function describeRacks(pair) {
  const section = byId("cables");
  section.replaceChildren();
  const [rack, other] = [byId("rack").value, byId("other").value];
  if (rack === "") return;
  const title = pair.length + (pair.length === 1 ? " link " : " links ") + (other === "" ? "leave " : "between ") + fabric.racks[rack]
    + (other === "" ? "" : " and " + fabric.racks[other]);
  add(section, "h2", title);
  if (other === "") return;
  const list = add(section, "ol");
  pair.forEach(([u, v]) => add(list, "li", fabric.names[u] + ":" + portName(u, v) + " – "
    + fabric.names[v] + ":" + portName(v, u)));
}

function pairLinks() {
  const [rack, other] = [byId("rack").value, byId("other").value];
  const found = [];
  if (rack === "") return found;
  fabric.links.forEach((near, u) => near.forEach((v) => {
    const there = fabric.rack[v];
    if (fabric.rack[u] !== Number(rack) || there === Number(rack)) return;
    if (other === "" || there === Number(other)) found.push([u, v]);
  }));
  return found;
}

function redraw() {
  overlay.replaceChildren();
  const pair = pairLinks();
  pair.forEach((ends) => line(ends, "pair"));
  describeRacks(pair);
  let minimal = null, others = [];
  if (chosen.length === 2) {
    minimal = walk(chosen[0], chosen[1]);
    others = minimal ? alternates(chosen[0], chosen[1]) : [];
    others.forEach((path) => line(path, "alternate"));
    if (minimal) line(minimal, "minimal");
    others.forEach((path) => path.slice(1, -1).forEach((v) => ring(v, "alternate")));
    if (minimal) minimal.slice(1, -1).forEach((v) => ring(v, "minimal"));
  } else if (hovered >= 0) {
    fabric.links[hovered].forEach((v) => line([hovered, v], "near"));
  }
  chosen.forEach((v) => ring(v, "end"));
  picture.classList.toggle("busy", chosen.length === 2 || pair.length > 0);
  describePaths(minimal, others);
}

function choose(vertices) {
  chosen = vertices;
  byId("from").value = chosen.length > 0 ? fabric.names[chosen[0]] : "";
  byId("to").value = chosen.length > 1 ? fabric.names[chosen[1]] : "";
  ["from", "to"].forEach((id) => byId(id).removeAttribute("aria-invalid"));
  byId("told").textContent = "";
  const hash = chosen.map((v) => encodeURIComponent(fabric.names[v])).join("/");
  history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  describeNode(chosen.length ? chosen[chosen.length - 1] : -1);
  redraw();
}

// Mouse and keyboard.

function position(event) {
  const point = new DOMPoint(event.clientX, event.clientY);
  return point.matrixTransform(picture.getScreenCTM().inverse());
}

function nodeAt(event) {
  const { x, y } = position(event);
  const reach = picture.querySelector("defs rect").height.baseVal.value / 2 + 5;
  const wide = picture.querySelector("defs rect").width.baseVal.value / 2 + 3;
  let best = -1, least = Infinity;
  for (let v = 0; v < order; v++) {
    const dx = Math.abs(fabric.x[v] - x), dy = Math.abs(fabric.y[v] - y);
    if (dx <= wide && dy <= reach && dx + dy < least) [best, least] = [v, dx + dy];
  }
  return best;
}

function hover(event) {
  const v = nodeAt(event);
  tip.hidden = v < 0;
  if (v >= 0) {
    const ports = byPort(v).map((w) => portName(v, w) + " → " + fabric.names[w]);
    const more = ports.length > 10 ? ["… " + (ports.length - 10) + " more; click for all"] : [];
    tip.textContent = [fabric.names[v], "vertex " + v + ", " + fabric.kinds[fabric.kind[v]],
      "(" + fabric.coordinates[v].join(", ") + ")", fabric.racks[fabric.rack[v]],
      ...fabric.sites.slice(v, v + 1).map((site) => "stands in " + site), ...ports.slice(0, 10), ...more, ...fabric.hosts[v].slice(0, 4)].join("\n");
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4);
    tip.style.left = left + "px";
    tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 4) + "px";
  }
  if (v !== hovered) {
    hovered = v;
    if (chosen.length < 2) redraw();
  }
}

const home = picture.getAttribute("viewBox").split(" ").map(Number);
let view = home.slice(), held = null, moved = false;

function setView(box) {
  view = box;
  picture.setAttribute("viewBox", view.join(" "));
}

picture.addEventListener("wheel", (event) => {
  event.preventDefault();
  const factor = Math.min(2, Math.max(0.5, Math.exp(event.deltaY * 0.0015)));
  const width = Math.min(home[2], Math.max(home[2] / 40, view[2] * factor));
  const ratio = width / view[2], { x, y } = position(event);
  setView([x - (x - view[0]) * ratio, y - (y - view[1]) * ratio, width, view[3] * ratio]);
}, { passive: false });

// The view a part as wide as now, about its middle, or moved by a part of its width and height.
function zoom(factor) {
  const width = Math.min(home[2], Math.max(home[2] / 40, view[2] * factor)), ratio = width / view[2];
  const [x, y, w, h] = view;
  setView(width === home[2] ? home.slice() : [x + w * (1 - ratio) / 2, y + h * (1 - ratio) / 2, width, h * ratio]);
}

function pan(across, down) {
  setView([view[0] + across * view[2], view[1] + down * view[3], view[2], view[3]]);
}

const KEYS = {
  "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), "0": () => setView(home.slice()),
  ArrowLeft: () => pan(-0.1, 0), ArrowRight: () => pan(0.1, 0),
  ArrowUp: () => pan(0, -0.1), ArrowDown: () => pan(0, 0.1),
};
picture.tabIndex = 0;
picture.addEventListener("keydown", (event) => {
  if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});
byId("nearer").addEventListener("click", KEYS["+"]);
byId("farther").addEventListener("click", KEYS["-"]);
byId("whole").addEventListener("click", KEYS["0"]);

picture.addEventListener("pointerdown", (event) => {
  held = position(event);
  moved = false;
});

picture.addEventListener("pointermove", (event) => {
  if (!held) {
    hover(event);
    return;
  }
  const { x, y } = position(event);
  const pixels = picture.getScreenCTM().a;
  if (moved || Math.hypot(x - held.x, y - held.y) * pixels > 5) {
    moved = true;
    setView([view[0] + held.x - x, view[1] + held.y - y, view[2], view[3]]);
  }
});

picture.addEventListener("pointerup", (event) => {
  const wasClick = held && !moved;
  held = null;
  if (!wasClick) return;
  const v = nodeAt(event);
  if (v >= 0) choose(chosen.length === 1 && chosen[0] !== v ? [chosen[0], v] : [v]);
});

picture.addEventListener("pointerleave", () => {
  held = null;
  tip.hidden = true;
  hovered = -1;
  if (chosen.length < 2) redraw();
});

function clear() {
  byId("rack").value = byId("other").value = "";
  setView(home.slice());
  choose([]);
}

// A name that no node has clears what was shown for the one before.
function typed() {
  const fields = [byId("from"), byId("to")], written = fields.map((field) => field.value.trim());
  const found = written.map(find);
  const wrong = written.filter((word, i) => word !== "" && found[i] < 0);
  if (found[0] === found[1] && found[0] >= 0) found.pop();
  choose(found.filter((v) => v >= 0 && !wrong.length));
  fields.forEach((field, i) => {
    field.value = written[i];
    if (wrong.includes(written[i])) field.setAttribute("aria-invalid", "true");
  });
  byId("told").textContent = wrong.length ? "No node is called " + wrong.join(", nor ") + "."
    : found.length < 2 ? "From and to are the same node." : "";
}

function fromAddress() {
  const [from, to] = location.hash.slice(1).split("/");
  byId("from").value = decodeURIComponent(from);
  byId("to").value = decodeURIComponent(to ?? "");
  typed();
}

fabric.names.forEach((name) => byId("names").append(new Option("", name)));
["rack", "other"].forEach((id, place) => {
  const select = byId(id);
  select.add(new Option("–", ""));
  fabric.racks.forEach((name, i) => select.add(new Option(name, i)));
  select.value = String(fabric.marked[place] ?? "");
  select.addEventListener("change", redraw);
});
byId("from").addEventListener("change", typed);
byId("to").addEventListener("change", typed);
byId("ends").addEventListener("submit", (event) => event.preventDefault());
byId("clear").addEventListener("click", clear);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") clear();
});
addEventListener("hashchange", fromAddress);
fromAddress();
