// What the theme leaves out: names for screen readers, and boxes that scroll by keyboard.
document$.subscribe(() => setTimeout(() => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-typeset__scrollwrap").forEach(box => { box.tabIndex = 0; });
  document.querySelectorAll(".md-code__nav").forEach((bar, number) =>
    bar.setAttribute("aria-label", `Code ${number + 1}`));
}));
