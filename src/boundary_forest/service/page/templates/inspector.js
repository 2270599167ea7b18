"use strict";
// The inspector: a row is picked or typed; its answer, the stored rows behind it and the trees' paths are drawn.

// An element with classes and children; text is text.
function make(name, kind, ...children) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...children);
  return element;
}

function drawPicture(picture) {
  const space = document.querySelector("#chart-template").content.querySelector("svg").namespaceURI;
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
  svg.setAttribute("class", "picture");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", picture.label);
  svg.setAttribute("shape-rendering", "crispEdges");
  for (const { d, opacity } of picture.shades) {
    const path = svg.appendChild(document.createElementNS(space, "path"));
    path.setAttribute("d", d);
    path.setAttribute("fill-opacity", opacity);
  }
  return svg;
}

function table(heads, rows) {
  const head = make("tr", "", ...heads.map(([text, kind]) => {
    const cell = make("th", kind, text);
    cell.scope = "col";
    return cell;
  }));
  return make("table", "list", make("thead", "", head), make("tbody", "", ...rows));
}

const row = (cells) => make("tr", "", ...cells.map(([content, kind]) => make("td", kind, content)));

function details(summary, ...children) {
  return make("details", "", make("summary", "", summary), ...children);
}

// A table that may be wider than the page.
function scroller(label, content) {
  const area = make("div", "scroller", content);
  area.tabIndex = 0;
  area.setAttribute("role", "region");
  area.setAttribute("aria-label", label);
  return area;
}

function drawAnswer(found) {
  const said = make("p", "", make("span", "quiet", found.title + " "), make("b", "true", found.answer));
  const text = make("div", "", said, make("p", "quiet", found.note));
  const head = make("header", "", text);
  if (found.picture) head.append(drawPicture(found.picture));
  const parts = [make("h3", "unseen", "The answer"), head];
  if (found.shares.length) {
    const bar = make("div", "votes", ...found.shares.map(({ kind, style }) => {
      const part = make("span", kind);
      part.style.cssText = style;
      return part;
    }));
    bar.setAttribute("aria-hidden", "true");
    const legend = found.shares.map(({ label, share, kind }) =>
      make("li", "", make("i", "key fill " + kind), label + " ", make("b", "", share)));
    parts.push(bar, make("ul", "legend", ...legend));
  }
  return make("article", "card example", ...parts);
}

function drawExamples(found) {
  const parts = [make("h3", "", "The stored rows behind it")];
  if (found.picture) {
    parts.push(make("ul", "drawn", ...found.examples.filter((one) => one.picture).map((one) =>
      make("li", "", drawPicture(one.picture),
        make("span", "", make("b", one.kind, one.label), " " + one.weight)))));
  }
  const heads = [["row", ""], ["label", ""], ...["distance", "weight", "trees"].map((name) => [name, "number"])];
  const rows = found.examples.map((one) => row([
    [one.name, ""], [make("b", one.kind, one.label), ""],
    [one.distance, "number"], [one.weight, "number"], [one.trees, "number"],
  ]));
  parts.push(scroller("The stored rows", table(heads, rows)), make("p", "quiet", found.more));
  if (found.columns) {
    const names = ["column", "your row", ...found.examples.slice(0, 4).map((one) => one.name)];
    const compared = found.columns.rows.map(({ name, values, same }) =>
      row([[name, "quiet"], ...values.map((value, i) => [value, same[i] ? "" : "differs"])]));
    parts.push(details("Column by column",
      scroller("The row and stored rows by column", table(names.map((name) => [name, ""]), compared)),
      make("p", "quiet", found.columns.more)));
  }
  return make("article", "card example", ...parts);
}

function drawPaths(found) {
  const heads = [["tree", ""], ["path from the root", ""], ["ends at", ""], ["distance", "number"],
    ["weight", "number"], ["lifetime", "number"]];
  const rows = found.trees.map((tree, i) => {
    const steps = make("span", "path", ...tree.steps.map(({ kind, text }) => {
      const step = make("i", kind);
      step.title = text;
      return step;
    }));
    steps.setAttribute("role", "img");
    steps.setAttribute("aria-label", tree.n);
    return row([[String(i + 1), "quiet"], [steps, ""], [make("b", tree.kind, tree.label), ""],
      [tree.distance, "number"], [tree.weight, "number"], [tree.lifetime, "number"]]);
  });
  const note = make("p", "quiet", "A square is a stored row on the way from the root of a tree to its locally "
    + "closest row, blue where its label is the answer. A tree weighs more the closer its last row is.");
  return make("article", "card example", details(`The paths of ${found.trees.length} trees`, note,
    scroller("The paths of the trees", table(heads, rows))));
}

async function explain() {
  const error = byId("inspect-error");
  error.textContent = "";
  let typed;
  try {
    typed = JSON.parse(byId("row").value);
  } catch {
    error.textContent = "This is not JSON: write [1.5, 2.0] or {\"size\": 1.5, \"kind\": \"x\"}.";
    return;
  }
  try {
    const found = await request("page/explain", { rows: [typed] });
    byId("explained").replaceChildren(drawAnswer(found), drawExamples(found), drawPaths(found));
    byId("inspected").textContent = `${found.title} ${found.answer}; the explanation follows`; // for screen readers
  } catch (problem) {
    if (problem.status === 401) begin();
    else error.textContent = problem.message;
  }
}

async function showPicks() {
  let rows;
  try {
    ({ rows } = await request("page/rows"));
  } catch {
    return;
  }
  byId("picks").replaceChildren(...rows.map((picked) => {
    const button = make("button", "pick", picked.picture ? drawPicture(picked.picture) : picked.short);
    button.type = "button";
    button.title = picked.name;
    button.setAttribute("aria-label", picked.picture ? picked.name : `${picked.name}, ${picked.short}`);
    button.addEventListener("click", () => {
      byId("row").value = picked.row;
      explain();
    });
    return button;
  }));
  byId("picks").classList.toggle("drawn-rows", rows.some((picked) => picked.picture));
}

function clearInspector() {
  byId("picks").replaceChildren();
  byId("explained").replaceChildren();
  byId("inspected").textContent = "";
  byId("row").value = "";
}

byId("more-rows").addEventListener("click", showPicks);
byId("inspect").addEventListener("submit", (event) => {
  event.preventDefault();
  explain();
});
