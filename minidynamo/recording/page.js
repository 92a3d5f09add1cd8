(() => {
  const search = document.querySelector("#search");
  const rows = [...document.querySelectorAll("[data-text]")];
  const filter = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) row.hidden = !wanted.every((word) => row.dataset.text.includes(word));
    document.querySelector("#found").textContent = wanted.length ? rows.filter((r) => !r.hidden).length + " found" : "";
  };
  search.addEventListener("input", filter);
  const open = (row) => {
    const target = row.dataset.to && document.getElementById(row.dataset.to);
    if (!target) return;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    target.scrollIntoView({ block: "start" });
    (target.querySelector("summary") || target).focus();
  };
  const follow = () => location.hash && open({ dataset: { to: location.hash.slice(1) } });
  addEventListener("hashchange", follow);
  follow();
  document.addEventListener("click", (event) => {
    const row = event.target.closest("tr[tabindex]");
    if (row && !event.target.closest("a")) open(row);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
      return;
    }
    if (event.key === "Escape" && document.activeElement === search) {
      search.value = "";
      filter();
      search.blur();
      return;
    }
    const row = document.activeElement && document.activeElement.closest("tr[tabindex]");
    if (!row) return;
    const shown = [...row.parentElement.children].filter((r) => !r.hidden && r.hasAttribute("tabindex"));
    const at = shown.indexOf(row);
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step) {
      event.preventDefault();
      (shown[at + step] || row).focus();
    } else if (event.key === "Home" || event.key === "End") {
      event.preventDefault();
      shown[event.key === "Home" ? 0 : shown.length - 1].focus();
    } else if (event.key === "Enter") open(row);
  });
})();
