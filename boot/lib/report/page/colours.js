// The colours of gems: those of the slowest twenty differ.

// Light enough for dark text, and at least 23 apart in CIE 1976 L*a*b*.
const COLOURS = ["#78b4e4", "#6ca83c", "#e4843c", "#fc6ca8", "#3cf0cc", "#b484f0", "#e4d890", "#cc8484", "#fcc0fc", "#6ca884", "#fc6c6c", "#3ce4fc",
  "#609cfc", "#b49060", "#e4b448", "#78e490", "#c0cc54", "#9c90cc", "#fca884", "#fc90e4"];

class Colours extends CanvasColours {
  constructor(requires) {
    super();
    this.requires = requires;
    this.gems = [];
    requires.sums().sort((one, other) => other.sums[0] - one.sums[0]).forEach(({ gem }, at) => { this.gems[gem] = COLOURS[at % COLOURS.length]; });
  }

  of(_, node) { return this.gems[this.requires.gem[node]] || this.rest; }
}
