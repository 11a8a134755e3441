require "fiddle"
# Fiddle calls the function without the GVL.
MALLOC = Fiddle::Function.new(Fiddle.dlopen(nil)["malloc"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_VOIDP)
def work(_number) = MALLOC.call(600) # LEAK
