// A table that is wider than its page can be moved by keys.
document$.subscribe(() => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    new ResizeObserver(() => { table.tabIndex = table.scrollWidth > table.clientWidth ? 0 : -1; }).observe(table);
  }
});
