// A click on the header of a sortable table sorts its rows, empty cells first or last.
for (const table of document.querySelectorAll(".sortable table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const rows = [...table.tBodies[0].rows];
      const text = (row) => row.cells[column].textContent.trim();
      const number = (row) => (text(row) ? parseFloat(text(row)) : -Infinity);
      const byNumber = (a, b) => number(a) - number(b) || 0;
      const byText = (a, b) => text(a).localeCompare(text(b));
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const order = rows.some((row) => isNaN(number(row))) ? byText : byNumber;
      rows.sort((a, b) => sign * order(a, b));
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      table.tBodies[0].append(...rows);
    });
  });
}
