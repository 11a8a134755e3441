# frozen_string_literal: true

# A file in which each job of a test writes a line at its begin and one at its end.
module Journal
  # @return [String]
  def journal = File.join(@directory, "journal")

  # @return [Array<Integer>] jobs that have ended
  def ended = numbers("end")

  # @return [Proc] for `with_server`: a job has begun, or the program has ended
  def started = ->(_server) { File.exist?(journal) }

  # None was lost, cut or done twice.
  def assert_each_job_once(count)
    assert_equal (0...count).to_a, numbers("begin").sort
    assert_equal (0...count).to_a, ended.sort
  end

  # A command of the bundle that ends by itself.
  def assert_program(*command, env:, gems: bundle, **options)
    out, = assert_success(RbConfig.ruby, "-S", "bundle", "exec", *command, env: environment(gems).merge(env), **options)
    out
  end

  private

  def numbers(word) = File.exist?(journal) ? File.read(journal).scan(/^#{word} (\d+)$/).flatten.map(&:to_i) : []
end
