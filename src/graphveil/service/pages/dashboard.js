"use strict";
const at = (id) => document.getElementById(id);
const make = (name, text, kind) => {
  const found = document.createElement(name);
  if (text !== undefined && text !== null) found.textContent = text;
  if (kind) found.className = kind;
  return found;
};
const fill = (id, ...parts) => at(id).replaceChildren(...parts);
const percent = (value) => (100 * value).toFixed(1) + " %";
const plain = (value) => Number(value).toLocaleString("en");
const KEY = "graphveil-token";
let token = "";
let watching = null;

const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(KEY, given);
  history.replaceState(null, "", location.pathname);
}

async function ask(path, signal) {
  const answer = await fetch(path, { headers: { Authorization: "Bearer " + token }, signal, cache: "no-store" });
  if (!answer.ok) throw Object.assign(new Error("refused"), { status: answer.status });
  return answer;
}

function list(rows, nothing) {
  if (!rows.length) return make("p", nothing, "muted");
  const found = make("ul");
  for (const [left, right, note] of rows) {
    const line = make("li"), side = make("div", left);
    if (note) side.append(make("div", note, "note"));
    line.append(side, make("span", right));
    found.append(line);
  }
  return found;
}

function chart(rows) {
  if (!rows.length) return [make("p", "Nothing has arrived yet.", "muted")];
  const last = rows[rows.length - 1].minute, first = Math.min(rows[0].minute, last - 14), most = Math.max(...rows.map((r) => r.reports));
  const space = "http://www.w3.org/2000/svg", picture = document.createElementNS(space, "svg"), count = last - first + 1;
  picture.setAttribute("viewBox", `0 0 ${count} 100`);
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `Reports per minute, at most ${most}`);
  for (const row of rows) {
    const bar = document.createElementNS(space, "rect"), high = Math.max(1, 98 * row.reports / most);
    for (const [name, value] of [["x", row.minute - first + 0.08], ["y", 100 - high], ["width", 0.84], ["height", high]]) bar.setAttribute(name, value);
    picture.append(bar);
  }
  const time = (minute) => new Date(minute * 60000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const ends = make("div", null, "ends");
  ends.append(make("span", time(first)), make("span", `at most ${plain(most)} a minute`), make("span", time(last)));
  return [picture, ends];
}

function jobs(rows) {
  if (!rows.length) return [make("p", "Nothing has been trained yet.", "muted")];
  const found = [];
  const newest = rows[0];
  if (newest.state === "running") {
    const bar = make("progress");
    bar.max = Math.max(newest.total, 1);
    bar.value = newest.done;
    found.push(make("p", `Job ${newest.id}: ${newest.step || "starting"}, ${newest.done} of ${newest.total}`), bar);
  }
  return [...found, list(rows.map((row) => [`Job ${row.id}`, row.state, row.message]))];
}

function quality(model) {
  if (!model) return [make("p", "There is no model yet.", "muted")];
  const told = model.figures;
  return [
    list([
      ["Accuracy, estimated", `${percent(told.accuracy)} ± ${percent(told.standard_error)}`, "from released labels alone; nothing clean is known here"],
      ["Agreement with released labels", percent(told.agreement), `${plain(told.validation)} people kept for validation`],
      ["People the model knows", plain(told.people)],
    ]),
  ];
}

function budgets(rows) {
  return list(rows.map((row) => {
    if (row.spent === null) return [row.part, row.allowed === "raw" ? "IN THE CLEAR" : "withheld", row.told ? "declared public: told to all who take part" : ""];
    return [row.part, `${row.left.toFixed(2)} of ${row.allowed.toFixed(2)} left`, `epsilon ${row.spent.toFixed(2)} is asked for so far`];
  }), "");
}

function paid(rows) {
  return list(rows.map((row) => [`epsilon ${row.epsilon.toFixed(2)}`, `${plain(row.records)} records`, `each at most, in stage ${row.stage}`]), "");
}

function certificate(model) {
  if (!model) return [make("p", "There is no model yet, hence no certificate.", "muted")];
  const title = model.holds ? "The promise holds." : "NO PROMISE HOLDS for this model.";
  return [make("p", title, model.holds ? "" : "alarm"), ...model.warnings.map((line) => make("p", line, "alarm")), make("pre", model.words.join("\n"))];
}

function attacks(model) {
  const rows = model ? model.attacks : [];
  return list(rows.map((row) => [row.attack, row.auc === null ? "-" : `AUC ${row.auc.toFixed(3)}`, row.auc === null ? row.variant : `${row.variant}; ${row.low.toFixed(3)} to ${row.high.toFixed(3)}`]), "None was run on this model.");
}

function show(told) {
  const refused = told.refused.reduce((sum, row) => sum + row.reports, 0);
  const tiles = [[plain(told.reports), "reports"], [plain(told.people), "people"], [plain(told.holders), "holders"], [plain(refused), "refused"],
    [told.model && told.model.epsilon !== null ? told.model.epsilon.toFixed(2) : "-", "epsilon of the model"], [told.method, "method"]];
  fill("tiles", ...tiles.map(([value, name]) => {
    const tile = make("div", null, "tile");
    tile.append(make("b", value), make("span", name));
    return tile;
  }));
  at("state").textContent = told.state;
  fill("arrivals", ...chart(told.arrivals));
  fill("rounds", list(told.rounds.map((row) => [row.name, `${plain(row.reports)}, ${row.state}`, row.asks.join("; ")]), ""));
  fill("refused", list(told.refused.map((row) => [row.reason, plain(row.reports), row.stage]), "None so far."));
  fill("jobs", ...jobs(told.jobs));
  fill("quality", ...quality(told.model));
  fill("budgets", budgets(told.budgets));
  fill("paid", paid(told.paid), make("p", told.paid_words, "note"));
  fill("attacks", attacks(told.model));
  fill("certificate", ...certificate(told.model));
  at("status").textContent = "live, " + new Date().toLocaleTimeString();
}

async function watch(name) {
  if (watching) watching.abort();
  const mine = (watching = new AbortController());
  for (let pause = 500; !mine.signal.aborted; pause = Math.min(2 * pause, 10000)) {
    try {
      const answer = await ask(`/v1/collections/${encodeURIComponent(name)}/events`, mine.signal);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let kept = ""; ; ) {
        const { value, done } = await reader.read();
        if (done) break;
        kept += value;
        const parts = kept.split("\n\n");
        kept = parts.pop();
        for (const part of parts) if (part.startsWith("data: ")) show(JSON.parse(part.slice(6)));
        pause = 500;
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error.status === 401 || error.status === 403) return closed("This token may not see the dashboard.");
    }
    at("status").textContent = "not connected; trying again";
    await new Promise((go) => setTimeout(go, pause));
  }
}

function closed(why) {
  sessionStorage.removeItem(KEY);
  at("main").hidden = true;
  at("door").hidden = false;
  at("status").textContent = why;
}

async function open() {
  token = sessionStorage.getItem(KEY) || "";
  if (!token) return;
  try {
    const mine = (await (await ask("/v1/token")).json()).collection;
    const all = await (await ask("/v1/collections")).json();
    const found = mine ? all.filter((one) => one.name === mine) : all;
    fill("which", ...found.map((one) => make("option", one.name)));
    at("door").hidden = true;
    at("main").hidden = false;
    if (found.length) watch(found[0].name);
    else at("status").textContent = "There is no collection yet.";
  } catch (error) {
    closed("The service could not be asked.");
  }
}

at("which").addEventListener("change", () => watch(at("which").value));
at("door").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, at("token").value.trim());
  open();
});
open();
