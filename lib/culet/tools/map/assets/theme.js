// Light or dark, as the reader's system says. Colours come in pairs: `colour` and `dark`.

const DARK = window.matchMedia("(prefers-color-scheme: dark)");

function themed(one) { return DARK.matches ? one.dark : one.colour; }

// A colour of the page's styles, for what is drawn on the canvas.
function styled(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
