# frozen_string_literal: true

require_relative "cow/family"
require_relative "cow/document"
require_relative "cow/table"

module Culet
  # What forked processes still share with their parent, and what they do not any more.
  #
  #   Family     a process with all that it forked, each read once
  #   Member     one of them
  #   Standing   each resident page against the relative's page at the same address
  #   Census     that, by what the memory is used for
  #   Shares     bytes shared, unshared, fresh
  #   Verdicts   what follows, in words; Table, Document: all of it for a terminal and as JSON
  module Cow
  end
end
