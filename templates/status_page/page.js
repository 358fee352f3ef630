"use strict";
// Asks for the state every two seconds and shows it. Texts of the fabric are only ever set as text.
const EVERY = 2000, SHOWN = 12, LOGGED = 200;
const $ = (id) => document.getElementById(id);
let floor = null, seen = 0, chosen = null, latest = null, heard = 0;

const element = (name, text, parent) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};

const ask = async (path) => {
  const answer = await fetch(path, { cache: "no-store" });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
};

function build(found) {
  floor = found;
  floor.far = new Map();
  for (const [a, port, b, there] of floor.links) {
    floor.far.set(`${floor.names[a]} ${port}`, floor.names[b]);
    floor.far.set(`${floor.names[b]} ${there}`, floor.names[a]);
  }
  $("title").textContent = floor.title;
  $("racks").replaceChildren();
  floor.cells = new Map();
  floor.racks.forEach((name, rack) => {
    const here = floor.names.filter((_, v) => floor.rack[v] === rack);
    if (!here.length) return;
    const box = element("div", undefined, $("racks"));
    box.className = "rack";
    element("h3", name, box);
    const cells = element("div", undefined, box);
    cells.style.setProperty("--wide", Math.max(3, Math.ceil(Math.sqrt(here.length))));
    for (const node of here) {
      const cell = element("button", undefined, cells);
      cell.addEventListener("click", () => { chosen = node; detail(); });
      floor.cells.set(node, cell);
    }
  });
}

function show(state) {
  latest = state;
  document.title = `${state.in_sync}/${state.switches.length} ${state.name}`;
  $("name").textContent = state.name;
  $("build").textContent = state.build;
  $("proved").textContent = state.caveat || `proved: ${state.proved}`;
  $("in_sync").textContent = state.role === "follower"
    ? `stands by: ${state.leader || "nobody"} leads`
    : `${state.in_sync} of ${state.switches.length}`;
  for (const word of ["connected", "dead_links", "errors"]) $(word).textContent = state[word];
  const broken = new Set(state.links.filter((link) => link.dead).map((link) => link.node));
  for (const one of state.switches) {
    const cell = floor.cells.get(one.name);
    const hurt = broken.has(one.name) || one.drained;
    cell.className = one.state.replace(" ", "-") + (hurt ? " broken" : "");
    const words = [one.name, one.state, ...(hurt ? ["dead link or drained"] : []), one.error];
    cell.title = words.filter(Boolean).join(", ");
    cell.setAttribute("aria-label", cell.title);
  }
  rows("dead", state.links.filter((link) => link.dead), (link) => [link.node, link.port, far(link)]);
  const load = state.links.filter((link) => link.utilisation !== null);
  load.sort((a, b) => b.utilisation - a.utilisation);
  rows("busy", load.slice(0, SHOWN), (link) => [
    link.node, link.port, far(link), `${Math.round(100 * link.utilisation)} %`,
  ]);
  detail();
}

const far = (link) => floor.far.get(`${link.node} ${link.port}`) ?? "";

function rows(table, values, cells) {
  const body = $(table).tBodies[0];
  body.replaceChildren();
  for (const value of values) {
    const row = element("tr", undefined, body);
    for (const cell of cells(value)) element("td", cell, row);
  }
  if (!values.length) element("td", "none", element("tr", undefined, body));
}

function detail() {
  const one = latest && latest.switches.find((each) => each.name === chosen);
  $("chosen").hidden = !one;
  if (!one) return;
  $("chosen").querySelector("h2").textContent = `Switch ${one.name}`;
  const list = $("chosen").querySelector("dl");
  list.replaceChildren();
  for (const [word, value] of Object.entries(one)) {
    if (word === "name" || value === "" || value === false) continue;
    element("dt", word.replace("_", " "), list);
    element("dd", value === true ? "yes" : value, list);
  }
}

function log(events) {
  for (const event of events) {
    seen = event.number;
    const line = document.createElement("li");
    const when = new Date(1000 * event.at);
    element("time", when.toLocaleTimeString(), line).dateTime = when.toISOString();
    line.append([event.event, event.node, event.text].filter(Boolean).join(" "));
    $("log").prepend(line);
  }
  while ($("log").children.length > LOGGED) $("log").lastChild.remove();
}

async function turn() {
  try {
    const state = await ask("/api/state");
    if (!floor || floor.build !== state.build) build(await ask("/api/floor"));
    show(state);
    if (state.last_event < seen) seen = 0; // the controller was started again
    log(await ask(`/api/events?after=${seen}`));
    heard = Date.now();
  } catch (error) {
    console.warn(error);
  }
  const late = Math.round((Date.now() - heard) / 1000);
  const silent = heard === 0 || Date.now() - heard > 2 * EVERY;
  $("age").textContent = silent ? `no answer from the controller${heard ? ` for ${late} s` : ""}` : "live";
  $("age").classList.toggle("late", silent);
  setTimeout(turn, EVERY);
}

turn();
