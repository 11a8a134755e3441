# frozen_string_literal: true

require "net/http"
require "openssl"
require "timeout"
require "uri"
require_relative "../../errors"
require_relative "../../system/clock"

module Culet
  module Profile
    # Sends profiles to a server that accepts what Pyroscope accepts: POST /ingest, with a pprof file as the body.
    #
    # A thread sends. At most MOST_WAITING profiles wait for the server; another one replaces the oldest. A request that
    # may succeed later is repeated, with pauses that double; a profile that the server refuses is dropped.
    class Pyroscope
      # A failed request that may succeed later.
      class Unavailable < StandardError
        # @return [Float, nil] the pause that the server asks for, in seconds
        attr_reader :pause

        # @param pause [Float, nil]
        def initialize(message, pause = nil)
          super(message)
          @pause = pause
        end
      end

      # A failed request that would fail again.
      class Refused < StandardError; end

      Waiting = Struct.new(:content, :from, :to)

      # Profiles that wait for the server.
      MOST_WAITING = 10
      FIRST_PAUSE_SECONDS = 1.0
      LONGEST_PAUSE_SECONDS = 60.0
      OPEN_SECONDS = 10
      ANSWER_SECONDS = 30
      # Of a whole request.
      REQUEST_SECONDS = 90
      # Of an answer, for the message.
      MOST_ANSWER_BYTES = 200
      PATH = "/ingest"
      # Request Timeout, Too Many Requests
      TEMPORARY = [408, 429].freeze
      FAILURES = [SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::ProtocolError,
                  Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError].freeze
      private_constant :Unavailable, :Refused, :Waiting, :FIRST_PAUSE_SECONDS, :LONGEST_PAUSE_SECONDS, :OPEN_SECONDS,
                       :ANSWER_SECONDS, :REQUEST_SECONDS, :MOST_ANSWER_BYTES, :PATH, :TEMPORARY, :FAILURES

      # @param address [String]
      # @return [URI::HTTP]
      # @raise [Culet::UsageError]
      def self.parse(address)
        uri = URI.parse(address)
        return uri if uri.is_a?(URI::HTTP) && !uri.host.to_s.empty? && uri.query.nil? && uri.fragment.nil?

        raise URI::InvalidURIError
      rescue URI::InvalidURIError
        shown = address.sub(%r{//[^/]*@}, "//")[0, 80]
        raise UsageError, "--push takes an address, e.g. http://localhost:4040, not #{shown.inspect}"
      end

      # @return [Integer] profiles that the server accepted
      attr_reader :sent

      # @return [Integer] profiles that it did not
      attr_reader :dropped

      # @return [String, nil] the last problem, as a sentence; nil after a request that succeeded
      attr_reader :problem

      # @param address [String] e.g. `http://localhost:4040`; a user and a password in it are sent as credentials
      # @param name [String] of the application, as Pyroscope writes it: "shop" or "shop{region=eu}"
      # @param notes [#puts] gets a line when a request fails for another reason than the one before, or succeeds again
      # @param environment [#[]] with CULET_PUSH_USER and CULET_PUSH_PASSWORD, or CULET_PUSH_TOKEN, and
      #   CULET_PUSH_TENANT
      # @raise [Culet::UsageError] when the address is none
      # @raise [Culet::Error] when a variable cannot be sent
      def initialize(address, name:, notes:, environment: ENV)
        @uri = Pyroscope.parse(address)
        @name = name
        @notes = notes
        @environment = environment
        @headers = headers
        @waiting = []
        @lock = Mutex.new
        @changed = ConditionVariable.new
        @sent = @dropped = @failures = 0
      end

      # @return [String] the address, without credentials
      def to_s
        shown = @uri.dup
        shown.user = shown.password = nil
        shown.to_s
      end

      # @return [Hash{String => Integer}] the numbers, for JSON
      def to_h = { "sent" => sent, "dropped" => dropped }

      # Sends a profile, without waiting for the server.
      #
      # @param content [String] a pprof file
      # @param from [Time] begin of the interval that it covers
      # @param to [Time] its end
      def write(content, from, to)
        @lock.synchronize do
          @thread ||= Thread.new { send_all }
          @waiting << Waiting.new(content, from, to)
          drop(@waiting.first) if @waiting.size > MOST_WAITING
          @changed.signal
        end
      end

      # Waits until the profiles are sent; drops the rest.
      #
      # @param seconds [Numeric] the longest wait
      def close(seconds)
        @lock.synchronize do
          @closed = true
          @changed.signal
        end
        @thread&.join(seconds)
        @thread&.kill&.join
        @lock.synchronize { drop(@waiting.first) while @waiting.any? }
      end

      private

      def headers
        { "Content-Type" => "application/octet-stream", "Accept-Encoding" => "identity", "User-Agent" => "culet",
          "Authorization" => authorization, "X-Scope-OrgID" => variable("CULET_PUSH_TENANT") }.compact
      end

      def authorization
        user, password = [@uri.user, @uri.password].map { |part| part && URI.decode_www_form_component(part) }
        user ||= variable("CULET_PUSH_USER")
        password ||= variable("CULET_PUSH_PASSWORD")
        return "Basic #{["#{user}:#{password}"].pack("m0")}" if user

        token = variable("CULET_PUSH_TOKEN")
        "Bearer #{token}" if token
      end

      def variable(name)
        value = @environment[name].to_s
        raise Error, "#{name} contains a control character" if value.match?(/[[:cntrl:]]/)

        value unless value.empty?
      end

      def send_all
        while (first = following)
          attempt(first)
        end
      end

      # @return [Waiting, nil] nil after the last one
      def following
        @lock.synchronize do
          @changed.wait(@lock) until @waiting.any? || @closed
          @waiting.first
        end
      end

      def attempt(first)
        post(first)
        @lock.synchronize { accept(first) }
        recovered
      rescue Refused => e
        @lock.synchronize { drop(first) }
        failed("#{self} refuses a profile: #{e.message}")
      rescue Unavailable => e
        failed("cannot push to #{self}: #{e.message}", "; trying again")
        rest(e.pause || pause)
      end

      # The lock is held.
      def accept(profile)
        @sent += 1 if remove(profile)
      end

      # The lock is held.
      def drop(profile)
        @dropped += 1 if remove(profile)
      end

      # By identity: two profiles may be equal.
      def remove(profile)
        index = @waiting.index { |one| one.equal?(profile) }
        @waiting.delete_at(index) if index
      end

      def recovered
        @notes.puts("culet: #{self} accepts profiles again") if @problem
        @problem = nil
        @failures = 0
      end

      # @param remark [String] for the note alone: the problem may still be there after the last request
      def failed(sentence, remark = "")
        @notes.puts("culet: #{sentence}#{remark}") if sentence != @problem
        @problem = sentence
        @failures += 1
      end

      # Random, so that many clients do not try again at once.
      def pause = [FIRST_PAUSE_SECONDS * (2**[@failures - 1, 10].min), LONGEST_PAUSE_SECONDS].min * (0.5 + (rand / 2))

      # `close` ends the pause; after it, pauses are short.
      def rest(seconds)
        @lock.synchronize do
          next @changed.wait(@lock, FIRST_PAUSE_SECONDS) if @closed

          deadline = Clock.now + seconds
          @changed.wait(@lock, [deadline - Clock.now, 0.001].max) until @closed || Clock.now >= deadline
        end
      end

      def post(profile)
        request = Net::HTTP::Post.new(target(profile), @headers)
        request.body = profile.content
        check(*Timeout.timeout(REQUEST_SECONDS) { answer(request) })
      rescue *FAILURES => e
        raise Unavailable, reason(e)
      end

      def target(profile)
        path = @uri.path.delete_suffix("/")
        path += PATH unless path.end_with?(PATH)
        query = { name: @name, from: profile.from.to_i, until: profile.to.to_i, format: "pprof", spyName: "culet" }
        "#{path}?#{URI.encode_www_form(query)}"
      end

      # @return [Array(Net::HTTPResponse, String)] the answer and the beginning of its body
      def answer(request)
        text = +""
        found = nil
        catch(:enough) do
          connection.start do |http|
            http.request(request) do |response|
              found = response
              throw :enough if response.is_a?(Net::HTTPSuccess)
              response.read_body { |part| throw :enough if (text << part).bytesize >= MOST_ANSWER_BYTES }
            end
          end
        end
        [found, text.byteslice(0, MOST_ANSWER_BYTES)]
      end

      def connection
        http = Net::HTTP.new(@uri.hostname, @uri.port)
        http.use_ssl = @uri.scheme == "https"
        http.open_timeout = OPEN_SECONDS
        http.read_timeout = http.write_timeout = ANSWER_SECONDS
        http
      end

      def check(response, text)
        return if response.is_a?(Net::HTTPSuccess)

        detail = printable(text)
        sentence = "it answers #{response.code} #{printable(response.message)}#{": #{detail}" unless detail.empty?}"
        raise Refused, "#{sentence} (give the address that it leads to)" if response.is_a?(Net::HTTPRedirection)
        raise Refused, sentence if response.code.start_with?("4") && !TEMPORARY.include?(response.code.to_i)

        raise Unavailable.new(sentence, asked_pause(response))
      end

      def asked_pause(response)
        seconds = response["Retry-After"].to_s[/\A\d{1,4}\z/] or return
        Float(seconds, exception: false)&.clamp(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
      end

      def printable(text) = text.to_s.dup.force_encoding(Encoding::UTF_8).scrub.gsub(/[[:cntrl:] ]+/, " ").strip

      def reason(error)
        case error
        when Timeout::Error then "it does not answer in time"
        when EOFError then "it closes the connection"
        else printable(error.message)[0, MOST_ANSWER_BYTES]
        end
      end
    end
  end
end
