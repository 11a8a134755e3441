// The system's light or dark theme. Colours come in pairs: `colour` and `dark`.

const DARK = window.matchMedia("(prefers-color-scheme: dark)");

function themed(one) { return DARK.matches ? one.dark : one.colour; }

// A colour of the style sheet, for the canvas.
function styled(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
