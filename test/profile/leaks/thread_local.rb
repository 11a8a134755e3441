def work(number)
  (Thread.current[:seen] ||= []) << "seen #{number} " * 30 # LEAK
end
