# frozen_string_literal: true

require "net/http"
require "openssl"
require "timeout"
require "uri"
require_relative "../../errors"

module Culet
  module Profile
    # Sends profiles to a server that accepts what Pyroscope accepts: POST /ingest, with a pprof file as the body.
    #
    # A request that may succeed later is repeated at the end of the next interval. At most MOST_WAITING profiles wait
    # for that; another one replaces the oldest. A profile that the server refuses is dropped.
    class Pyroscope
      # A failed request that may succeed later.
      class Unavailable < StandardError; end

      # A failed request that would fail again.
      class Refused < StandardError; end

      Waiting = Struct.new(:content, :from, :to)

      # Profiles that wait for the server.
      MOST_WAITING = 10
      # Time limit of a request, which may delay the next reading.
      REQUEST_SECONDS = 10
      # Longest part of an answer in a message.
      MOST_ANSWER_BYTES = 200
      PATH = "/ingest"
      # Request Timeout, Too Many Requests
      TEMPORARY = [408, 429].freeze
      FAILURES = [SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::ProtocolError,
                  Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError].freeze
      private_constant :Unavailable, :Refused, :Waiting, :REQUEST_SECONDS, :MOST_ANSWER_BYTES, :PATH, :TEMPORARY,
                       :FAILURES

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
        @sent = @dropped = 0
      end

      # @return [String] the address, without credentials
      def to_s
        shown = @uri.dup
        shown.user = shown.password = nil
        shown.to_s
      end

      # @return [Hash{String => Integer}] the numbers, for JSON
      def to_h = { "sent" => sent, "dropped" => dropped }

      # Sends a profile, behind those that wait.
      #
      # @param content [String] a pprof file
      # @param from [Time] begin of the interval that it covers
      # @param to [Time] its end
      def write(content, from, to)
        @waiting << Waiting.new(content, from, to)
        drop if @waiting.size > MOST_WAITING
        send_waiting
      end

      # Tries once more to send what waits, and drops the rest.
      def close
        send_waiting
        drop while @waiting.any?
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

      def send_waiting
        attempt(@waiting.first) while @waiting.any?
      rescue Unavailable => e
        failed("cannot push to #{self}: #{e.message}", "; trying again")
      end

      def attempt(profile)
        post(profile)
        @waiting.shift
        @sent += 1
        @notes.puts("culet: #{self} accepts profiles again") if @problem
        @problem = nil
      rescue Refused => e
        drop
        failed("#{self} refuses a profile: #{e.message}")
      end

      def drop
        @waiting.shift
        @dropped += 1
      end

      # @param remark [String] for the note alone: the problem may still be there after the last request
      def failed(sentence, remark = "")
        @notes.puts("culet: #{sentence}#{remark}") if sentence != @problem
        @problem = sentence
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
        http
      end

      def check(response, text)
        return if response.is_a?(Net::HTTPSuccess)

        detail = printable(text)
        sentence = "it answers #{response.code} #{printable(response.message)}#{": #{detail}" unless detail.empty?}"
        raise Refused, "#{sentence} (give the address that it leads to)" if response.is_a?(Net::HTTPRedirection)
        raise Refused, sentence if response.code.start_with?("4") && !TEMPORARY.include?(response.code.to_i)

        raise Unavailable, sentence
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
