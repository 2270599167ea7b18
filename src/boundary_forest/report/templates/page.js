// The confusion matrix: what the cell under the pointer says, and its row and column.
{
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
