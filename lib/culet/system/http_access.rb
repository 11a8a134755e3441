# frozen_string_literal: true

require "digest"

module Culet
  # Access control of culet's HTTP servers.
  #
  # @api private
  module HTTPAccess
    # An address in numbers, or a name without a dot, each with or without a port.
    LOCAL = /\A(?:\[[\h:.]+\]|\d{1,3}(?:\.\d{1,3}){3}|[a-z0-9_-]+)(?::\d{1,5})?\z/i
    private_constant :LOCAL

    module_function

    # A page of elsewhere reads a port of this machine or network by a name of its own that leads here (DNS rebinding).
    # The browser sends that name. It has a dot, because the public domain name system has no other hosts.
    #
    # @param header [String] the request's Host
    # @param names [Array<String>] other names that lead here
    # @return [Boolean] whether no page of elsewhere can have sent the request
    def own_host?(header, names: [])
      header = header.strip
      header.match?(LOCAL) || names.any? { |name| header.sub(/:\d+\z/, "").casecmp?(name) }
    end

    # How long it takes tells nothing about either: digests are compared.
    #
    # @param one [String]
    # @param other [String]
    def same_secret?(one, other) = Digest::SHA256.digest(one) == Digest::SHA256.digest(other)
  end
end
