// What run_view.py, map_view.py and elite_view.py do, on a page without a server.
//
// `runs` are all runs of the page and `place` says which of them this is. Its widgets are `moment`, `colour`, `across`,
// `up` and `fitness`; `cells`, `empty`, `dots`, `centres` and `ring` are what its `plot` draws; `caption` and `facts`
// are texts. `redraw(row)` draws what an elite of the archive did, nothing if the row is -1.
const run = runs[place]

function scene_of(run) { return run.scenes.data.scene[run.now.data.scene[0]] }

function column(run, name) {
  const scene = scene_of(run)
  if (name in scene.columns) return scene.columns[name]
  const [kind, number] = name.split(" ")
  return Float32Array.from(scene.stored, row => archived(run, kind, row)[Number(number) - 1])
}

// A row of a table of the archive; elites that were replaced since have none.
function archived(run, kind, row) {
  const table = run.archive.data[kind], width = table.length / run.archive.data.cell.length
  return Array.from({length: width}, (_, i) => row < 0 ? NaN : table[row * width + i])
}

function ends(...lists) {
  let low = Infinity, high = -Infinity
  for (const list of lists) for (const value of list) { low = Math.min(low, value); high = Math.max(high, value) }
  return low <= high ? [low, high] : [0, 1]
}

// The ends of a colour scale, as `statistics.scale_limits` has them.
function scale_limits(values) {
  const known = Float64Array.from(values.filter(Number.isFinite)).sort(), last = known.length - 1
  if (last < 0) return [0, 1]
  const at = share => {
    const below = Math.floor(share * last), above = Math.min(below + 1, last)
    return known[below] + (share * last - below) * (known[above] - known[below])
  }
  const first = at(0.25), third = at(0.75), reach = third > first ? 3 * (third - first) : Infinity
  const low = Math.max(known[0], first - reach), high = Math.min(known[last], third + reach)
  return [low, high > low ? high : low + 1]
}

function say(pane, text) { pane.text = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;") }  // Panel takes it escaped

function narrowed() { return fitness.value[0] > fitness.start || fitness.value[1] < fitness.end }

// The filter reaches as far as a scale of colours; one that was narrowed stays so. Returns whether it moved.
function set_filter() {
  const before = fitness.value, kept = narrowed() ? fitness.value : null
  const [low, end] = scale_limits(Array.from(column(run, "fitness")))
  const value = kept === null ? [low, end] : [Math.max(kept[0], low), Math.min(kept[1], end)]
  fitness.setv({start: low, end, step: (end - low) / 200, value: value[0] <= value[1] ? value : [low, end]})
  return fitness.value.some((value, i) => value !== before[i])
}

// Which elites are seen, and where; with cells also which of these hold one.
function laid_out() {
  const scene = scene_of(run), x = column(run, across.value), y = column(run, up.value)
  const fit = column(run, "fitness"), [low, high] = fitness.value
  const seen = Array.from(fit, one => (one >= low || low <= fitness.start) && (one <= high || high >= fitness.end))
  const is_map = across.value === "descriptor 1" && up.value === "descriptor 2"
  const outlines = is_map ? scene.cells : null
  const shown = seen.map((here, i) => here && Number.isFinite(x[i]) && Number.isFinite(y[i]))
  const held = outlines === null ? [] : Array.from(outlines.holder, row => row >= 0 && shown[row])
  const rows = [...shown.keys()].filter(i => shown[i])
  return {scene, x, y, rows, outlines, held, is_map, hidden: seen.filter(here => !here).length}
}

function numbers(scene, rows) {
  const value = column(run, colour.value), fit = column(run, "fitness")
  return {id: rows.map(i => scene.id[i]), fitness: rows.map(i => fit[i]), value: rows.map(i => value[i])}
}

function outline(outlines, cell) {
  const begin = cell === 0 ? 0 : outlines.end[cell - 1], corners = {length: outlines.end[cell] - begin}
  return [Array.from(corners, (_, i) => outlines.x[begin + i]), Array.from(corners, (_, i) => outlines.y[begin + i])]
}

function draw_cells(scene, outlines, held) {
  const of = full => {
    const polygons = held.flatMap((here, cell) => here === full ? [outline(outlines, cell)] : [])
    return {xs: polygons.map(one => one[0]), ys: polygons.map(one => one[1])}
  }
  cells.data = {...of(true), ...numbers(scene, held.flatMap((here, cell) => here ? [outlines.holder[cell]] : []))}
  empty.data = of(false)
}

// Show all of it, unless that is where it was: a zoom then stays while the map moves.
function set_frame([left, bottom, right, top]) {
  for (const [range, start, end] of [[plot.x_range, left, right], [plot.y_range, bottom, top]]) {
    if (range.reset_start !== start || range.reset_end !== end) range.setv({start, end, reset_start: start, reset_end: end})
  }
}

function frame_around(x, y, middles) {
  const sides = [ends(x, middles.x), ends(y, middles.y)], wide = sides.map(([low, high]) => high - low)
  const square = across.value !== "fitness" && up.value !== "fitness"
  const half = wide.map(side => Math.max(0.52 * (square ? Math.max(...wide) : side), 1e-6))
  const centre = sides.map(([low, high]) => (low + high) / 2)
  return [centre[0] - half[0], centre[1] - half[1], centre[0] + half[0], centre[1] + half[1]]
}

// Colours of one number of one task have a common scale.
function paint() {
  for (const one of runs) {
    const name = one.now.data.colour[0]
    const alike = runs.filter(other => other.task === one.task && other.now.data.colour[0] === name)
    const [low, high] = scale_limits(alike.flatMap(other => Array.from(column(other, name))))
    one.colours.setv({low, high})
    one.bar.title = name
  }
}

function mark({scene, x, y, rows}) {
  const row = scene.id.indexOf(run.now.data.chosen[0])
  ring.data = rows.includes(row) ? {x: [x[row]], y: [y[row]]} : {x: [], y: []}
}

function draw() {
  const moved = run.now.data.scene[0] !== moment.value
  run.now.data = {...run.now.data, scene: [moment.value], colour: [colour.value]}
  if (moved && set_filter()) return  // a filter that moves has all drawn
  const layout = laid_out(), {scene, x, y, rows, outlines, held, is_map, hidden} = layout
  draw_cells(scene, outlines, held)
  const dotted = outlines === null ? rows : []
  dots.data = {x: dotted.map(i => x[i]), y: dotted.map(i => y[i]), ...numbers(scene, dotted)}
  const crossed = outlines === null && across.value in scene.centres && up.value in scene.centres
  centres.data = crossed ? {x: scene.centres[across.value], y: scene.centres[up.value]} : {x: [], y: []}
  const known = [...scene.id.keys()].filter(i => Number.isFinite(x[i]) && Number.isFinite(y[i]))
  set_frame(outlines?.frame ?? frame_around(known.map(i => x[i]), known.map(i => y[i]), centres.data))
  plot.below[0].axis_label = across.value
  plot.left[0].axis_label = up.value
  const projected = across.value.startsWith("component") && up.value.startsWith("component")
  const told = scene.captions[is_map && scene.captions.map ? "map" : projected ? "projected" : "other"]
  say(caption, `<div class='more'>${told}${hidden ? `; ${hidden} hidden by the filter` : ""}.</div>`)
  paint()
  mark(layout)
}

function list(values) {
  const shown = Array.from({length: Math.min(values.length, 12)}, (_, i) => Number(values[i].toPrecision(3))).join(", ")
  return values.length > 12 ? `${shown}, ... (${values.length} numbers)` : shown
}

function describe(scene, row) {
  const stored = scene.stored[row], own = name => scene.columns[name][row]
  const descriptor = Object.keys(scene.columns).filter(name => name.startsWith("descriptor ")).length
  const told = {descriptor: list(Array.from({length: descriptor}, (_, i) => own(`descriptor ${i + 1}`)))}
  if (stored >= 0) {
    if (run.archive.data.truth.length) told.truth = list(archived(run, "truth", stored))
    told.cell = run.archive.data.cell[stored]
    told.solution = list(archived(run, "solution", stored))
  }
  told.age = `${own("age")} ${own("age") === 1 ? "evaluation" : "evaluations"}`
  const table = Object.entries(told).map(([name, value]) => `<tr><th>${name}</th><td>${value}</td></tr>`).join("")
  const gone = stored < 0 ? `<div class="sentence">${replaced}</div>` : ""
  const more = `fitness ${Number(own("fitness").toPrecision(4))}`
  return `<h3>Elite ${scene.id[row]}</h3><div class='more'>${more}</div><table>${table}</table>${gone}`
}

// The elite, or that of the cell, nearest to where the map was clicked.
function choose(event) {
  const layout = laid_out(), {scene, x, y, rows, outlines, held} = layout
  const cells = [...held.keys()].filter(cell => held[cell])
  const places = cells.length
    ? cells.map(cell => [outlines.middle_x[cell], outlines.middle_y[cell], outlines.holder[cell]])
    : rows.map(row => [x[row], y[row], row])
  const wide = plot.x_range.end - plot.x_range.start, high = plot.y_range.end - plot.y_range.start
  let chosen = null, least = Infinity
  for (const [here_x, here_y, row] of places) {
    const distance = ((here_x - event.x) / wide) ** 2 + ((here_y - event.y) / high) ** 2
    if (distance < least) { chosen = row; least = distance }
  }
  if (chosen === null) return
  run.now.data = {...run.now.data, chosen: [scene.id[chosen]]}
  say(facts, describe(scene, chosen))
  redraw(scene.stored[chosen])
  mark(layout)
}

if (cb_obj.event_name === "tap") choose(cb_obj)
else draw()
