// Light or dark: as the system says, or as the reader chose with the button. Loaded in the head, so that nothing is
// drawn in the other colours first. Pictures and embedded pages follow the property color-scheme.
(function () {
  "use strict";
  var key = "culet-scheme", system = matchMedia("(prefers-color-scheme: dark)");

  function chosen() {
    try { return localStorage.getItem(key); } catch (refused) { return null; } // cookies are off
  }

  function keep(scheme) {
    try { localStorage.setItem(key, scheme); } catch (refused) { return; } // cookies are off
  }

  function current() { return chosen() || (system.matches ? "dark" : "light"); }

  function apply() {
    var scheme = current();
    document.getElementById("dark").media = scheme === "dark" ? "all" : "not all";
    document.documentElement.style.colorScheme = scheme;
    document.documentElement.dataset.scheme = scheme;
  }

  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", function () {
    document.getElementById("scheme").addEventListener("click", function () {
      keep(current() === "dark" ? "light" : "dark");
      apply();
    });
  });
}());
