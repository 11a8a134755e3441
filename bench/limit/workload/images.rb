# frozen_string_literal: true

# Makes images of 1 to 3 MB in memory that Ruby does not count and frees with their objects, and keeps the last three.
require "digest"
require "fiddle"

MALLOC = Fiddle::Function.new(Fiddle.dlopen(nil)["malloc"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_VOIDP)
FREE = Fiddle::Function.new(Fiddle.dlopen(nil)["free"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID)
ROW = ("\x7f" * 65_536).freeze

kept = []
150.times do |number|
  bytes = ((number % 3) + 1) << 20
  image = Fiddle::Pointer.new(MALLOC.call(bytes).to_i, bytes, FREE)
  (0...bytes).step(ROW.bytesize) do |at|
    image[at, ROW.bytesize] = ROW
    Digest::SHA256.digest(ROW) # a decoder takes its time
  end
  kept[number % 3] = image
end
abort("the images are gone") unless kept.all? { |image| image[0] == 0x7f }
