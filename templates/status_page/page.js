"use strict";
// Asks for the state every two seconds and shows it. Texts of the fabric are only ever set as text.
const EVERY = 2000, SHOWN = 12, LOGGED = 200;
const UNITS = [[120, 1, "s"], [7200, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "d"]];
const $ = (id) => document.getElementById(id);
let floor = null, seen = 0, chosen = null, latest = null, heard = 0, ahead = 0;

const element = (name, text, parent) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};

const put = (where, text) => { if (where.textContent !== text) where.textContent = text; };

// A controller that hangs answers nothing, for minutes.
const ask = async (path) => {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(2 * EVERY) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
};

// Words

const collator = new Intl.Collator("en", { numeric: true });

function span(seconds) {
  const [, unit, word] = UNITS.find(([limit]) => seconds < limit);
  return `${Math.floor(Math.max(seconds, 0) / unit)} ${word}`;
}

// The controller's clock may not be ours.
const ago = (at) => `${span(Date.now() / 1000 + ahead - at)} ago`;

function clock(at) {
  const two = (number) => String(number).padStart(2, "0");
  const when = new Date(1000 * at), today = new Date().toDateString() === when.toDateString();
  const day = [when.getFullYear(), two(when.getMonth() + 1), two(when.getDate())].join("-");
  const time = [when.getHours(), when.getMinutes(), when.getSeconds()].map(two).join(":");
  return { short: today ? time : `${day} ${time}`, whole: `${day} ${time}`, iso: when.toISOString() };
}

// Switches in their racks. One of them is in the order of Tab, the arrow keys go to the others.

function build(found) {
  floor = found;
  floor.links_of = new Map(floor.names.map((name) => [name, []]));
  for (const [a, port, b, there] of floor.links) {
    floor.links_of.get(floor.names[a]).push([port, floor.names[b], there]);
    floor.links_of.get(floor.names[b]).push([there, floor.names[a], port]);
  }
  for (const links of floor.links_of.values()) links.sort((a, b) => collator.compare(a[0], b[0]));
  put($("title"), floor.title);
  const longest = Math.min(16, Math.max(...floor.names.map((name) => name.length)));
  $("racks").style.setProperty("--cell", `${Math.max(2.2, 0.9 + 0.56 * longest)}rem`);
  $("racks").replaceChildren();
  floor.cells = new Map();
  const inside = floor.racks.map(() => []);
  floor.names.forEach((name, v) => inside[floor.rack[v]].push(name));
  inside.forEach((here, rack) => { if (here.length) fill(floor.racks[rack], here); });
  $("racks").querySelector("button").tabIndex = 0;
  match();
}

function fill(rack, names) {
  const box = element("div", undefined, $("racks"));
  box.className = "rack";
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", rack);
  element("h3", rack, box);
  const cells = element("div", undefined, box);
  cells.style.setProperty("--wide", Math.max(3, Math.ceil(Math.sqrt(names.length))));
  for (const node of names.sort(collator.compare)) {
    const cell = element("button", node, cells);
    cell.type = "button";
    cell.tabIndex = -1;
    cell.addEventListener("click", () => choose(node));
    floor.cells.set(node, cell);
  }
}

function reach(cell) {
  $("racks").querySelector("button[tabindex='0']").tabIndex = -1;
  cell.tabIndex = 0;
}

// The cell that an arrow key leads to: the next one, or the nearest one in the row above or below.
function beside(cell, key) {
  const cells = [...floor.cells.values()], at = cells.indexOf(cell);
  if (key === "Home") return cells[0];
  if (key === "End") return cells[cells.length - 1];
  if (key === "ArrowRight") return cells[at + 1];
  if (key === "ArrowLeft") return cells[at - 1];
  const down = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
  if (!down) return undefined;
  const { left, top } = cell.getBoundingClientRect();
  let best, least = Infinity;
  for (const other of cells) {
    const place = other.getBoundingClientRect(), drop = down * (place.top - top);
    const distance = 4 * drop + Math.abs(place.left - left);
    if (drop > 1 && distance < least) [best, least] = [other, distance];
  }
  return best;
}

$("racks").addEventListener("keydown", (event) => {
  const there = event.target.matches("button") && beside(event.target, event.key);
  if (!there) return;
  event.preventDefault();
  there.focus();
});
$("racks").addEventListener("focusin", (event) => {
  if (event.target.matches("button")) reach(event.target);
});

function match() {
  const word = $("find").value.trim().toLowerCase();
  const like = (name) => name.toLowerCase().includes(word);
  for (const [name, cell] of floor.cells) cell.classList.toggle("unlike", !like(name));
  const found = floor.names.filter(like);
  put($("found"), word ? `${found.length} of ${floor.names.length}` : "");
  return found.sort((a, b) => a.length - b.length || collator.compare(a, b));
}

$("find").addEventListener("input", () => { if (floor) match(); });
$("find").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && floor && match().length) choose(match()[0]);
});

// The state

function show(state) {
  latest = state;
  ahead = state.now - Date.now() / 1000;
  document.title = `${state.in_sync}/${state.switches.length} ${state.name}`;
  put($("name"), state.name);
  put($("build"), state.build);
  put($("proved"), state.caveat || `proved: ${state.proved}`);
  put($("held"), `held for ${span(state.build_age)}`);
  put($("in_sync"), state.role === "follower"
    ? `stands by: ${state.leader || "nobody"} leads`
    : `${state.in_sync} of ${state.switches.length}`);
  for (const word of ["connected", "dead_links", "errors"]) put($(word), String(state[word]));
  const broken = new Set(state.links.flatMap((link) => [link.node, link.far_node]));
  for (const one of state.switches) {
    const cell = floor.cells.get(one.name);
    const kind = one.state.replace(" ", "-") + (broken.has(one.name) || one.drained ? " broken" : "");
    const words = [one.name, one.state, broken.has(one.name) && "has a dead link", one.drained && "drained", one.error];
    const label = words.filter(Boolean).join(", ");
    if (cell.title === label) continue;
    cell.className = kind + (cell.classList.contains("unlike") ? " unlike" : "");
    cell.title = label;
    cell.setAttribute("aria-label", label);
  }
  const amiss = state.role === "follower" ? [] : state.switches.filter((one) => one.state !== "in sync" || rest(one));
  rows("amiss", amiss, (one) => [one.name, one.state, span(one.age), one.error || rest(one)]);
  rows("dead", state.links, (link) => [
    link.node, link.port, link.far_node, link.far_port, span(link.age), link.reason,
  ]);
  detail();
}

function rest(one) {
  return [
    one.drained && "drained",
    one.foreign && `${one.foreign} rows of others`,
    one.shadowed && `${one.shadowed} of them over its program`,
  ].filter(Boolean).join(", ");
}

// Rows are changed where they stand, so that a click or the keyboard's place is never lost.
function rows(table, values, cells, most = SHOWN) {
  const body = $(table).tBodies[0], shown = values.slice(0, most), more = values.length - shown.length;
  while (body.rows.length > shown.length) body.lastChild.remove();
  shown.forEach((value, i) => {
    const line = body.rows[i] ?? blank($(table));
    cells(value).forEach((text, k) => put(line.cells[k].firstChild ?? line.cells[k], text));
  });
  put($(table).tFoot.rows[0].cells[0], more ? `and ${more} more` : values.length ? "" : "none");
}

function blank(table) {
  const line = element("tr", undefined, table.tBodies[0]);
  for (const head of table.tHead.rows[0].cells) {
    const cell = element("td", undefined, line);
    cell.className = head.className;
    if (head.className === "pick") element("button", undefined, cell).type = "button";
  }
  return line;
}

addEventListener("click", (event) => {
  if (event.target.matches(".pick button")) choose(event.target.textContent);
});

// The chosen switch

function choose(node) {
  if (chosen) floor.cells.get(chosen)?.removeAttribute("aria-pressed");
  chosen = node;
  if (node) floor.cells.get(node).setAttribute("aria-pressed", "true");
  detail();
}

function close() {
  const cell = chosen && floor.cells.get(chosen);
  const inside = $("chosen").contains(document.activeElement);
  choose(null);
  if (cell && inside) cell.focus();
}

$("close").addEventListener("click", close);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
});

function detail() {
  const one = latest && latest.switches.find((each) => each.name === chosen);
  $("chosen").hidden = !one;
  if (!one) return;
  put($("chosen-name"), `Switch ${one.name}`);
  const list = $("chosen").querySelector("dl");
  list.replaceChildren();
  const facts = {
    state: `${one.state} for ${span(one.age)}`,
    "": rest(one),
    error: one.error,
    address: one.peer,
    "datapath id": one.datapath_id,
    compared: one.audited === null ? "" : `${span(one.audited)} ago`,
    [floor.noun]: floor.racks[floor.rack[floor.names.indexOf(one.name)]],
  };
  for (const [word, value] of Object.entries(facts)) {
    if (!value) continue;
    element("dt", word, list);
    element("dd", value, list);
  }
  const dead = new Map(latest.links.flatMap((link) => [
    [`${link.node} ${link.port}`, link], [`${link.far_node} ${link.far_port}`, link],
  ]));
  rows("ports", floor.links_of.get(one.name), ([port, far, there]) => {
    const link = dead.get(`${one.name} ${port}`);
    return [port, far, there, link ? `dead for ${span(link.age)}` : ""];
  }, Infinity);
}

// Events

function log(events) {
  for (const event of events) {
    seen = event.number;
    const line = document.createElement("li"), when = clock(event.at);
    const time = element("time", when.short, line);
    time.dateTime = when.iso;
    time.title = when.whole;
    element("span", ago(event.at), line).dataset.at = event.at;
    element("div", event.line || [event.node, event.event, event.text].filter(Boolean).join(" "), line);
    $("log").prepend(line);
  }
  while ($("log").children.length > LOGGED) $("log").lastChild.remove();
  for (const each of $("log").querySelectorAll("span")) put(each, ago(Number(each.dataset.at)));
}

async function turn() {
  try {
    const state = await ask("/api/state");
    if (!floor || floor.build !== state.build) build(await ask("/api/floor"));
    show(state);
    if (state.last_event < seen) { // the controller was started again
      seen = 0;
      $("log").replaceChildren();
    }
    log(await ask(`/api/events?after=${seen}`));
    heard = Date.now();
  } catch (error) {
    console.warn(error);
  }
  const silent = heard === 0 || Date.now() - heard > 2 * EVERY;
  const since = heard ? ` since ${clock(heard / 1000).short}` : "";
  put($("answer"), silent ? `no answer from the controller${since}` : "live");
  $("answer").classList.toggle("late", silent);
  setTimeout(turn, document.hidden ? 5 * EVERY : EVERY);
}

turn();
