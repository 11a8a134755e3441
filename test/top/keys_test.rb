# frozen_string_literal: true

require "test_helper"
require "culet/tools/top/keys"
require "culet/tools/top/state"

# What a terminal sends for keys, and what they set.
class TopKeysTest < Minitest::Test
  SENT = { "q" => ["q"], "\e[A" => [:up], "\eOB" => [:down], "\e[5~\e[6~" => %i[page_up page_down], "\e[1;5C" => [], "\e[H\eOF" => %i[home end],
           "/é日\r" => ["/", "é", "日", :enter], "\x7f\b" => %i[backspace backspace], "\xff\xfeq" => ["q"], "\x01\x03q" => ["q"], "\ex" => [:escape, "x"],
           "\e[200~ab\e[201~" => %w[a b], "\xc3q" => ["q"] }.freeze

  def test_bytes_become_keys
    SENT.each do |bytes, keys|
      assert_equal keys, Culet::Top::Keys.new.feed(bytes.b), bytes.inspect
    end
  end

  def test_keys_may_come_in_pieces
    SENT.each do |bytes, keys|
      decoder = Culet::Top::Keys.new
      assert_equal keys, bytes.b.each_char.flat_map { |byte| decoder.feed(byte) }, bytes.inspect
      refute_predicate decoder, :pending?
    end
  end

  def test_escape_is_a_key_when_nothing_follows
    decoder = Culet::Top::Keys.new
    assert_empty decoder.feed("\e")
    assert_predicate decoder, :pending?
    assert_equal [:escape], decoder.flush
    refute_predicate decoder, :pending?
    assert_empty decoder.flush
  end

  def test_any_bytes_end_in_keys
    random = Random.new(7)
    2000.times do
      decoder = Culet::Top::Keys.new
      keys = decoder.feed(random.bytes(random.rand(1..20))) + decoder.flush
      assert(keys.all? { |key| key.is_a?(Symbol) || key.match?(/\A[[:print:]]\z/) })
    end
  end

  def test_the_sorted_column_moves_among_those_shown
    state = Culet::Top::State.new
    columns = %i[pid pss private title]
    assert_equal :pss, state.sort
    assert_predicate state, :descending?
    assert_equal(%i[private title pid pss], Array.new(4) { press(state, ">", columns) && state.sort })
    assert_equal(%i[pid title], Array.new(2) { press(state, "<", columns) && state.sort })
    refute_predicate state, :descending?
    press(state, "r", columns)
    assert_predicate state, :descending?
    press(state, "s", %i[pid pss]) # the terminal has become narrower
    assert_equal :pss, state.sort
  end

  def test_the_filter_takes_every_character_while_it_is_typed
    state = Culet::Top::State.new
    ["/", "q", " ", "h", :backspace].each { |key| assert_nil state.press(key, sortable: [:pss]) }
    assert_equal ["q ", true, false, false], [state.filter, state.editing?, state.paused?, state.help?]
    state.press(:enter, sortable: [:pss])
    assert_equal ["q ", false], [state.filter, state.editing?]
    state.press(:escape, sortable: [:pss])
    assert_equal "", state.filter
    ["/", "x", :escape].each { |key| state.press(key, sortable: [:pss]) }
    assert_equal ["", false], [state.filter, state.editing?]
    assert_equal :quit, state.press("q", sortable: [:pss])
  end

  def test_help_keeps_the_place_in_the_table
    state = Culet::Top::State.new
    state.scroll_within(100, 10)
    3.times { state.press(:down, sortable: [:pss]) }
    state.press("h", sortable: [:pss])
    assert_equal [true, 0], [state.help?, state.offset]
    state.scroll_within(20, 10)
    state.press(:down, sortable: [:pss])
    assert_equal [true, 1], [state.help?, state.offset]
    assert_nil state.press("q", sortable: [:pss])
    assert_equal [false, 3], [state.help?, state.offset]
  end

  private

  def press(state, key, columns) = state.press(key, sortable: columns) || true
end
