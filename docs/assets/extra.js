// What scrolls in its own box can be reached and scrolled by the keyboard.
const focusable = () => {
  for (const box of document.querySelectorAll(
    "mjx-container, div.math, div.reproduction, .pst-scrollable-table-container, .cell_output pre",
  )) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
};
window.addEventListener("resize", focusable);
window.addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  focusable();
  for (const summary of document.querySelectorAll("nav summary")) {
    summary.ariaLabel = "Pages below " + summary.closest("li").querySelector("a").textContent.trim();
  }
  // The name of the search button begins with what is written on it.
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.ariaLabel = button.textContent.trim().replace(/\s+/g, " ");
  }
});
