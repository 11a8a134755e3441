# frozen_string_literal: true

require "test_helper"
require "culet/profile"

# The label of a job, as Sidekiq and Active Job call it.
class SidekiqLabelTest < Minitest::Test
  # What Active Job's module of the same method does.
  module Execution
    def perform_now = Culet::Profile.labels
  end

  class MailJob
    include Execution
    include Culet::Profile::ActiveJob
  end

  def test_the_class_of_a_job
    assert_equal({ "job" => "Mailer" }, call("class" => "Mailer"))
  end

  def test_the_wrapped_class_of_active_job
    assert_equal({ "job" => "MailJob" }, call("class" => "Sidekiq::ActiveJob::Wrapper", "wrapped" => "MailJob"))
  end

  def test_a_job_that_fails
    assert_raises(IOError) { Culet::Profile::Sidekiq.new.call(Object.new, { "class" => "Mailer" }, "default") { raise IOError } }
    assert_empty Culet::Profile.labels
  end

  def test_a_job_of_active_job
    assert_equal({ "job" => "SidekiqLabelTest::MailJob" }, MailJob.new.perform_now)
    assert_empty Culet::Profile.labels
  end

  private

  def call(message)
    Culet::Profile::Sidekiq.new.call(Object.new, message, "default") { Culet::Profile.labels }
  end
end
