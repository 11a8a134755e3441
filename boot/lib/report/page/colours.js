// The colours of gems: two whose boxes touch in the graph of any figure differ.

// Light enough for dark text, and at least 23 apart in CIE 1976 L*a*b*.
const COLOURS = ["#78b4e4", "#6ca83c", "#e4843c", "#fc6ca8", "#3cf0cc", "#b484f0", "#e4d890", "#cc8484", "#fcc0fc", "#6ca884", "#fc6c6c", "#3ce4fc",
  "#609cfc", "#b49060", "#e4b448", "#78e490", "#c0cc54", "#9c90cc", "#fca884", "#fc90e4"];

// For each gem those with adjacent boxes.
function neighbours(requires) {
  const sets = requires.gems.map(() => new Set());
  const meet = (one, other) => {
    const [left, right] = [requires.gem[one], requires.gem[other]];
    if (left < 0 || right < 0 || left === right) return;
    sets[left].add(right);
    sets[right].add(left);
  };
  for (const picture of requires.figures.map((figure) => requires.picture(figure))) {
    for (const node of picture.walk()) {
      const list = picture.childrenOf(node);
      list.forEach((child, at) => {
        meet(child, node);
        if (at > 0) meet(child, list[at - 1]);
      });
    }
  }
  return sets;
}

function hashed(name) {
  let hash = 0;
  for (let at = 0; at < name.length; at++) hash = (hash * 31 + name.charCodeAt(at)) >>> 0;
  return hash;
}

// Greedy colouring: gems with most neighbours first, each with the least used colour that no neighbour has. The search
// starts at a hash of the name, so that a gem has the same colour on most pages.
function paint(requires) {
  const sets = neighbours(requires), chosen = requires.gems.map(() => null), uses = COLOURS.map(() => 0);
  const gems = requires.gems.map((_, gem) => gem).sort((one, other) => sets[other].size - sets[one].size);
  for (const gem of gems) {
    const taken = COLOURS.map(() => 0), start = hashed(requires.gems[gem].replace(/ .*/, ""));
    for (const other of sets[gem]) if (chosen[other] !== null) taken[chosen[other]]++;
    const order = COLOURS.map((_, at) => (start + at) % COLOURS.length);
    const best = order.reduce((least, one) => (taken[one] < taken[least] || (taken[one] === taken[least] && uses[one] < uses[least]) ? one : least));
    chosen[gem] = best;
    uses[best]++;
  }
  return chosen.map((one) => COLOURS[one]);
}

class Colours extends CanvasColours {
  constructor(requires) {
    super();
    this.requires = requires;
    this.gems = paint(requires);
  }

  of(_, node) { return this.gems[this.requires.gem[node]] || this.rest; }
}
