for (const part of document.querySelectorAll("section.search")) {
  const box = part.querySelector("p"), input = part.querySelector("input");
  const rows = [...part.querySelectorAll("tr[data-name]")];
  const folds = [...part.querySelectorAll("details.rows")];
  box.hidden = false;
  input.addEventListener("input", () => {
    const text = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.dataset.name.includes(text);
      shown += !row.hidden;
    }
    for (const fold of folds) fold.open = text && fold.querySelector("tr[data-name]:not([hidden])");
    part.querySelector("output").textContent = text
      ? `${shown} of ${rows.length} rows of this page; ${part.dataset.file} has all columns` : "";
  });
}
