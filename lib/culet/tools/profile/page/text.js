// Sums and nodes as text.

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

// The lines of a node's tooltip: its name, then its figures.
function describeNode(picture, node) {
  const { profile, sums, before } = picture;
  const sum = sums.at(node), name = picture.name(node);
  const frame = picture.tree.frames[node];
  const lines = [name];
  if (frame >= 0) {
    const place = profile.place(frame, true);
    const gem = profile.text(profile.frames.gem[frame]);
    if (place && place !== name) lines.push(place);
    lines.push(gem ? `${KINDS[profile.frames.kind[frame]]}: ${gem}` : KINDS[profile.frames.kind[frame]]);
  }
  lines.push(`${withInterval(sum, profile.distance)}, 95 % interval; ${share(sum.bytes, picture.total)}`);
  lines.push(`${counted(sum.blocks, "block")} from ${counted(sum.samples, "sample")}${sums.own && sums.own[node] > 0 && sums.own[node] < sum.bytes ? `; ${size(Math.round(sums.own[node]))} of its own` : ""}`);
  if (before) {
    const earlier = before.at(node);
    lines.push(`${changeWithInterval(sum, earlier, profile.distance)} since the earlier profile (${size(Math.round(earlier.bytes))})`);
    if (picture.change(node) === 0) lines.push("the change is within the interval");
  }
  return lines;
}
