"use strict";
// Line charts, of the report and of the service's page: the values under the pointer, in the legends, and new data.
// Charts of one group are pointed at together, by mouse, finger or arrow keys. Text goes in as text, never as markup.
const watchedCharts = [];

// Makes as many children as there are items, of an element's kind, and lets each show its item.
function fillWith(parent, items, make, show) {
  while (parent.children.length > items.length) parent.lastElementChild.remove();
  items.forEach((item, i) => show(parent.children[i] ?? parent.appendChild(make(item)), item, i));
}

function showPoint(chart, i) {
  const { data, area, rule, dots, values, at } = chart;
  const shown = i === null ? data.rest : i;
  area.classList.toggle("pointed", i !== null);
  rule.style.left = 100 * data.x[shown] + "%";
  at.textContent = data.at[shown];
  values.forEach((value, k) => (value.textContent = data.text[k][shown]));
  dots.forEach((dot, k) => {
    const y = data.y[k][shown];
    dot.hidden = y === null || y > 1 || y < 0;
    dot.style.left = 100 * data.x[shown] + "%";
    dot.style.bottom = 100 * y + "%";
  });
  chart.now = i;
}

// The charts of a group may have other points, but their axes are the same.
function pointAt(group, x) {
  for (const chart of watchedCharts.filter((c) => c.plot.dataset.group === group)) {
    const xs = chart.data.x;
    const nearest = (best, value, i) => (Math.abs(value - x) < Math.abs(xs[best] - x) ? i : best);
    showPoint(chart, x === null ? null : xs.reduce(nearest, 0));
  }
}

// Takes over what a plot says of itself: its points, its lines and its legend.
function readChart(chart) {
  const { plot, area, figure } = chart;
  chart.data = JSON.parse(plot.dataset.hover);
  chart.values = [...figure.querySelectorAll(".legend b")];
  chart.dots.forEach((dot) => dot.remove());
  chart.dots = [...plot.querySelectorAll(".line")].map((line) => {
    const dot = area.appendChild(document.createElement("i"));
    dot.className = "dot " + line.getAttribute("class").replace("line", "");
    return dot;
  });
}

function watchChart(plot) {
  const area = plot.querySelector(".area-of-plot");
  const figure = plot.closest("figure");
  const rule = area.appendChild(document.createElement("i"));
  rule.className = "rule";
  const chart = { plot, area, figure, rule, dots: [], at: figure.querySelector(".at"), now: null };
  readChart(chart);
  watchedCharts.push(chart);
  const follow = (event) => {
    const box = area.getBoundingClientRect();
    pointAt(plot.dataset.group, (event.clientX - box.left) / box.width);
  };
  plot.addEventListener("pointermove", follow);
  plot.addEventListener("pointerdown", follow);
  plot.addEventListener("pointerleave", () => pointAt(plot.dataset.group, null));
  plot.addEventListener("blur", () => pointAt(plot.dataset.group, null));
  plot.addEventListener("keydown", (event) => {
    const { data, now } = chart;
    const last = data.x.length - 1;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -25, PageDown: 25, Home: -last, End: last }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    pointAt(plot.dataset.group, data.x[Math.min(last, Math.max(0, (now ?? data.rest) + step))]);
  });
  return chart;
}

// Lets a figure, made by the macro line_chart, show another chart.
function drawChart(figure, drawn) {
  const set = (selector, text) => {
    const element = figure.querySelector(selector);
    if (element) element.textContent = text ?? "";
  };
  const element = (name) => () => document.createElement(name);
  const plot = figure.querySelector(".plot");
  const marks = (selector, list) =>
    fillWith(plot.querySelector(selector), list, element("span"), (span, mark) => {
      span.textContent = mark.text;
      span.style.cssText = mark.style;
    });
  figure.className = ("card " + drawn.class_).trim();
  set("h3", drawn.title);
  set("figcaption p", drawn.note);
  set(".at", drawn.at);
  set(".x-name", drawn.x_name);
  const makeKey = () => {
    const item = document.createElement("li");
    item.append(document.createElement("i"), "", " ", document.createElement("b"));
    return item;
  };
  fillWith(figure.querySelector(".legend"), drawn.legend, makeKey, (item, key) => {
    const [line, name, , value] = item.childNodes;
    line.className = "key " + key.color;
    name.data = key.name;
    value.textContent = key.text;
  });
  const svg = plot.querySelector("svg");
  const makePath = () => document.createElementNS(svg.namespaceURI, "path");
  fillWith(svg, drawn.paths, makePath, (path, { d, kind }) => {
    path.setAttribute("d", d);
    path.setAttribute("class", kind);
  });
  marks(".ys", drawn.ys);
  marks(".xs", drawn.xs);
  plot.setAttribute("aria-label", drawn.label);
  plot.dataset.group = drawn.group;
  plot.dataset.hover = drawn.hover;
  const chart = watchedCharts.find((c) => c.plot === plot);
  if (!chart) return watchChart(plot);
  const now = chart.now;
  readChart(chart);
  showPoint(chart, now === null ? null : Math.min(now, chart.data.x.length - 1));
  return chart;
}

// Forgets the charts of figures that are gone.
function dropCharts() {
  watchedCharts.splice(0, Infinity, ...watchedCharts.filter((chart) => chart.plot.isConnected));
}

document.querySelectorAll("[data-hover]").forEach(watchChart);
