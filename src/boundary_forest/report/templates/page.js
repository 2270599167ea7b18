"use strict";
// The values under the pointer, in the legends. Charts of one group are pointed at together, by mouse, finger or
// arrow keys.
{
  const charts = [...document.querySelectorAll("[data-hover]")].map((plot) => {
    const data = JSON.parse(plot.dataset.hover);
    const area = plot.querySelector(".area-of-plot");
    const figure = plot.closest("figure");
    const rule = area.appendChild(document.createElement("i"));
    rule.className = "rule";
    const dots = [...plot.querySelectorAll(".line")].map((line) => {
      const dot = area.appendChild(document.createElement("i"));
      dot.className = "dot " + line.getAttribute("class").replace("line", "");
      return dot;
    });
    const values = [...figure.querySelectorAll(".legend b")];
    return { plot, data, area, rule, dots, values, at: figure.querySelector(".at"), last: data.x.length - 1 };
  });

  const show = (chart, i) => {
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
  };
  // The charts of a group may have other points, but their axes are the same.
  const nearest = ({ data }, x) =>
    data.x.reduce((best, value, i) => (Math.abs(value - x) < Math.abs(data.x[best] - x) ? i : best), 0);
  const point = (group, x) =>
    charts.filter((c) => c.plot.dataset.group === group).forEach((c) => show(c, x === null ? null : nearest(c, x)));

  for (const chart of charts) {
    const { plot, area, data, last } = chart;
    const group = plot.dataset.group;
    const follow = (event) => {
      const box = area.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width;
      point(group, x);
    };
    plot.addEventListener("pointermove", follow);
    plot.addEventListener("pointerdown", follow);
    plot.addEventListener("pointerleave", () => point(group, null));
    plot.addEventListener("blur", () => point(group, null));
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -25, PageDown: 25, Home: -last, End: last }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      point(group, data.x[Math.min(last, Math.max(0, (chart.now ?? data.rest) + step))]);
    });
  }

  // The confusion matrix: what the cell under the pointer says, and its row and column.
  for (const table of document.querySelectorAll("table.confusion")) {
    const at = table.closest("figure").querySelector(".at");
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.title || cell.textContent);
    const clear = () => {
      at.textContent = "";
      table.querySelectorAll(".pointed").forEach((cell) => cell.classList.remove("pointed"));
    };
    table.addEventListener("pointerleave", clear);
    table.addEventListener("pointerover", (event) => {
      clear();
      const cell = event.target.closest("tbody td:not(.recall)");
      if (!cell) return;
      const head = cell.parentElement.cells[0];
      head.classList.add("pointed");
      table.tHead.rows[0].cells[cell.cellIndex].classList.add("pointed");
      cell.classList.add("pointed");
      const n = cell.textContent || "0";
      at.textContent = `true ${head.title || head.textContent}, predicted ${names[cell.cellIndex]}: ${n}`;
    });
  }
}
