# frozen_string_literal: true

require "test_helper"
require "culet/tools/profile"
require "culet/tools/profile/page"

# Profiles made up for the page.
module ProfilePageHelper
  include Culet::Profile

  Source = Struct.new(:name, :started_at, :taken_at, :sample_bytes, :lost)

  SAMPLE_BYTES = 524_288
  APP = "/srv/shop/app"
  GEMS = "/usr/lib/ruby/gems/3.3.0/gems"

  # A profile of these sites.
  class Made < Culet::Profile::Data
    # @param views [Hash{Symbol => Array<Culet::Profile::Site>}]
    def initialize(views, name: "app.rb (4242)")
      super([])
      @views = views
      @recordings = [Source.new(name, Time.at(1_790_000_000), Time.at(1_790_000_090), SAMPLE_BYTES, 0)]
    end

    def sites(view) = @views.fetch(view.to_sym, [])
  end

  def frame(method, file = nil, line = nil, gem: nil, library: nil, remark: nil) = Frame.new(file, line, method, gem, library, remark)

  # @param size [Integer] bytes of each block
  def site(frames, samples, size: 400, class_name: nil, labels: {})
    weight = 1 / (1 - Math.exp(-size.fdiv(SAMPLE_BYTES)))
    sums = Estimate.new(samples, samples * weight, samples * weight * size, samples * weight * (weight - 1) * size * size)
    Site.new([frames, class_name ? :object : :malloc, class_name, labels], sums)
  end

  def small
    main = frame("main", "/home/me/leak.rb", 12)
    string = [frame("String#*"), frame("Cache#value", "/home/me/leak.rb", 8), main]
    hash = [frame("st_insert", library: "libruby-3.1.so.3.1.2"), frame("Hash#[]="), frame("Cache#store", "/home/me/leak.rb", 4), main]
    live = [site(hash, 40, size: 64), site(string, 9, size: 40, class_name: "String"), site([frame("ruby_init", library: "libruby-3.1.so.3.1.2")], 2)]
    Made.new({ live: live, allocated: [site(string, 90, size: 40, class_name: "String")] }, name: "leak.rb (77)")
  end

  # @param count [Integer] sites
  # @param growth [Float] factor of the live bytes
  def large(count, growth: 1.0) = Shop.new(count).profile(growth)

  # A program like a Rails application, with deep stacks.
  class Shop
    include ProfilePageHelper

    WORDS = %w[Order Invoice Customer Cart Product Payment Shipment Address Coupon Session Report Feed Search Upload Avatar Comment].freeze
    ACTIONS = %w[index show create update].freeze
    LIBRARIES = %w[activerecord activesupport json nokogiri redis].freeze
    NATIVE = %w[ruby_xmalloc2 rb_str_resize ar_set st_insert].freeze
    CORE = ["Array#map", "String#+", "Hash#[]=", "Array#push", "String#dup"].freeze
    CLASSES = %w[String Hash Array Order Product Time].freeze
    SIZES = [40, 160, 640, 5_000, 200_000].freeze
    THREADS = [["Puma::ThreadPool#spawn_thread", "puma/thread_pool.rb", 155], ["Puma::Reactor#select_loop", "puma/reactor.rb", 75]].freeze
    MIDDLEWARE = %w[Logger Head Cookies Flash Static Runtime].freeze
    LEVELS = %w[Base Relation Cache Parser Result].freeze

    def initialize(count)
      @random = Random.new(1)
      @frames = Hash.new { |frames, (place, more)| frames[[place, more]] = frame(*place, **more) }
      @sites = Array.new(count) { |number| made(number) }
    end

    def profile(growth)
      Made.new({ live: part(0.8, growth), allocated: part(1, 9), peak: part(0.9, 1.2 * growth), growth: part(0.15, growth) })
    end

    private

    # Small numbers are more probable.
    def pick(list) = list[(list.size * (@random.rand**2)).to_i]

    def call(*place, **more) = @frames[[place, more]]

    def library_call(name, method, line) = call(method, "#{GEMS}/#{name}-7.1.2/lib/#{name}/#{line % 7}.rb", line, gem: "#{name} 7.1.2")

    def made(number)
      word = pick(WORDS)
      action = pick(ACTIONS)
      frames = [call("<main>", "/srv/shop/bin/rails", 4), thread, *middleware, controller(word, action), *models(word), *libraries]
      frames << call(pick(CORE)) if @random.rand < 0.7
      class_name = pick(CLASSES) if @random.rand < 0.35
      frames.concat(native) unless class_name
      labels = (number % 5).zero? ? { "job" => "#{word}Job" } : { "endpoint" => "#{word.downcase}s##{action}" }
      site(frames.reverse, ((@random.rand**6) * 60).ceil, size: pick(SIZES), class_name: class_name, labels: labels)
    end

    def thread
      method, file, line = pick(THREADS)
      call(method, "#{GEMS}/puma-6.4.2/lib/#{file}", line, gem: "puma 6.4.2")
    end

    def middleware
      Array.new(9) do |number|
        gem, name = [%w[rack Rack], %w[actionpack ActionDispatch]][number % 2]
        library_call(gem, "#{name}::#{MIDDLEWARE[number % 6]}#call", 20 + number)
      end
    end

    def controller(word, action) = call("#{word}sController##{action}", "#{APP}/controllers/#{word.downcase}s_controller.rb", 10 + ACTIONS.index(action))

    def models(word)
      Array.new(@random.rand(1..5)) do |depth|
        line = 3 + (9 * @random.rand(5))
        call("#{word}#{%w[Service Query Presenter Repository][depth % 4]}##{pick(%w[call load build render each to_h])}", "#{APP}/models/#{word.downcase}/#{depth}.rb", line)
      end
    end

    def libraries
      return [] if @random.rand > 0.6

      name = pick(LIBRARIES)
      Array.new(@random.rand(1..5)) { |depth| library_call(name, "#{name.capitalize}::#{LEVELS[depth]}##{pick(%w[exec load fetch parse decode])}", @random.rand(10..40)) }
    end

    def native
      frames = [call(pick(NATIVE), library: "libruby-3.3.so.3.3.0")]
      frames.unshift(call("sqlite3_exec", library: "libsqlite3.so.0.8.6")) if @random.rand < 0.15
      frames
    end

    # Some of the sites, with about `factor` times their samples.
    def part(share, factor)
      some = @sites.select { @random.rand < share }.map do |site|
        samples = [(site.samples * factor * @random.rand(0.6..1.4)).round, 1].max
        sums = %i[blocks bytes variance].map { |sum| site.estimate.public_send(sum) * samples / site.samples }
        Site.new([site.frames, site.kind, site.class_name, site.labels], Estimate.new(samples, *sums))
      end
      some.sort_by { |site| -site.bytes }
    end
  end
end
