# frozen_string_literal: true

require_relative "cow/family"
require_relative "cow/document"
require_relative "cow/table"
require_relative "cow/history"
require_relative "cow/command"

module Culet
  # What forked processes still share with their parent, and what they do not any more.
  #
  #   Family     a process with all that it forked, each read once
  #   Member     one of them
  #   Standing   each resident page against the relative's page at the same address
  #   Census     that, by what the memory is used for
  #   Comparison the bytes of the pages that are not shared any more against the relative's: Writes
  #   Shares     bytes shared, unshared, fresh
  #   History    sharing over time, by the kernel's figures alone; Curve: for a terminal; Chart: for the page
  #   Command    a command looked at for as long as it runs
  #   Picture    the loss over the map's drawing, as HTML
  #   Verdicts   what follows, in words; Table, Document: all of it for a terminal and as JSON
  module Cow
  end
end
