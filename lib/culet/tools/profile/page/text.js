// Sums as text.

// "4.20 MB (3.81–4.60 MB)"
function withInterval(sum, distance) {
  const [low, high] = sum.interval(distance).map(Math.round);
  return `${size(Math.round(sum.bytes))} (${range(low, high)})`;
}

// Both ends of an interval, with one unit if they have the same.
function range(low, high, write = size) {
  const [from, to] = [write(low), write(high)];
  const unit = / \S+$/.exec(to);
  return unit && from.endsWith(unit[0]) ? `${from.slice(0, -unit[0].length)} to ${to}` : `${from} to ${to}`;
}

function changeWithInterval(sum, before, distance) {
  const [low, high] = sum.changeInterval(before, distance);
  return `${signed(sum.bytes - before.bytes)} (${range(low, high, signed)})`;
}
