"use strict";
// The page of a service: events fill in figures and charts; login and logout. charts.js draws, inspector.js explains.
// Everything that comes from the service goes in as text, never as markup.
const byId = (id) => document.getElementById(id);
let events = null; // the EventSource, while figures come in
let again = null; // the timer of the next attempt to connect
let attempts = 0;
let session = { required: false, logged_in: false };

function showState(text, kind) {
  byId("state").textContent = text;
  byId("state").parentElement.dataset.kind = kind;
}

// Sends JSON and returns what is answered; an error has the service's message.
async function request(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  };
  const response = await fetch(path, options);
  const found = await response.json().catch(() => ({}));
  if (response.ok) return found;
  const { message, where } = found.error ?? {};
  const problem = new Error(message ? (where ? `${where}: ${message}` : message) : `status ${response.status}`);
  problem.status = response.status;
  throw problem;
}

function showFigures(figures) {
  byId("sentence").textContent = figures.sentence;
  byId("waiting").textContent = figures.waiting;
  byId("tiles").hidden = !figures.tiles.length;
  const makeTile = () => {
    const tile = document.createElement("div");
    tile.className = "tile";
    tile.append(...["span", "b", "small"].map((name) => document.createElement(name)));
    return tile;
  };
  fillWith(byId("tiles"), figures.tiles, makeTile, (tile, { name, value, beside }) => {
    [name, value, beside].forEach((text, i) => (tile.children[i].textContent = text));
  });
}

const fromTemplate = (id) => () => byId(id).content.firstElementChild.cloneNode(true);

function drawBars(figure, drawn) {
  figure.querySelector("h3").textContent = drawn.title;
  figure.querySelector("figcaption p").textContent = drawn.note;
  const makeRow = () => {
    const row = document.createElement("tr");
    const cells = ["", "bars", "number"].map((kind) => {
      const cell = row.appendChild(document.createElement("td"));
      cell.className = kind;
      return cell;
    });
    cells[1].appendChild(document.createElement("span")).className = "bar";
    return row;
  };
  fillWith(figure.querySelector("tbody"), drawn.bars, makeRow, (row, bar) => {
    row.cells[0].textContent = bar.name;
    row.cells[1].firstElementChild.style.cssText = bar.style;
    row.cells[2].textContent = bar.share;
  });
}

function showCharts(sections) {
  let shown = 0;
  for (const [name, drawn] of Object.entries(sections)) {
    const grid = document.querySelector(`[data-charts="${name}"]`);
    const [template, draw] = name === "bars" ? ["bars-template", drawBars] : ["chart-template", drawChart];
    fillWith(grid, drawn, fromTemplate(template), draw);
    grid.parentElement.hidden = !drawn.length;
    shown += drawn.length;
  }
  dropCharts();
  byId("nothing").hidden = shown > 0;
}

function connect() {
  disconnect();
  showState("connecting", "waiting");
  events = new EventSource("page/events");
  events.addEventListener("open", () => {
    attempts = 0;
    showState("live", "live");
  });
  events.addEventListener("figures", (event) => showFigures(JSON.parse(event.data)));
  events.addEventListener("charts", (event) => showCharts(JSON.parse(event.data)));
  events.addEventListener("expired", begin);
  events.addEventListener("error", () => {
    disconnect();
    showState("no connection: trying again", "lost");
    again = setTimeout(begin, Math.min(30000, 1000 * 2 ** attempts++));
  });
}

function disconnect() {
  events?.close();
  events = null;
  clearTimeout(again);
}

// Connects, or shows the login where one is needed.
async function begin() {
  disconnect();
  try {
    session = await request("page/session");
  } catch {
    showState("no connection: trying again", "lost");
    again = setTimeout(begin, Math.min(30000, 1000 * 2 ** attempts++));
    return;
  }
  const open = !session.required || session.logged_in;
  byId("login").hidden = open;
  byId("live").hidden = !open;
  byId("logout").hidden = !session.logged_in;
  byId("pause").hidden = !open;
  if (!open) {
    showState("logged out", "waiting");
    byId("sentence").textContent = "";
    byId("waiting").textContent = "";
    byId("tiles").hidden = true;
    byId("token").focus();
    return;
  }
  if (byId("pause").getAttribute("aria-pressed") === "true" || document.hidden) return;
  connect();
  showPicks();
}

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("login-error").textContent = "";
  try {
    await request("page/login", { token: byId("token").value });
    byId("token").value = "";
    await begin();
    document.querySelector("h1").scrollIntoView();
  } catch (problem) {
    const unknown = problem.status === 401 ? "This token is not valid." : problem.message;
    byId("login-error").textContent = unknown;
    byId("token").select();
  }
});

byId("logout").addEventListener("click", async () => {
  disconnect();
  await request("page/logout", {}).catch(() => {});
  clearInspector();
  document.querySelectorAll("[data-charts]").forEach((grid) => grid.replaceChildren());
  dropCharts();
  await begin();
});

byId("pause").addEventListener("click", (event) => {
  const paused = event.target.getAttribute("aria-pressed") !== "true";
  event.target.setAttribute("aria-pressed", String(paused));
  if (paused) {
    disconnect();
    showState("paused", "waiting");
  } else begin();
});

// A page that nobody sees needs no events.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    disconnect();
    showState("paused", "waiting");
  } else if (!events) begin();
});

addEventListener("DOMContentLoaded", begin); // by then inspector.js has run
