CHUNKS = []
def work(number) = CHUNKS << [number].pack("N").ljust(400, "\0") # LEAK
