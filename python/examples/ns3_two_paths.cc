// The network of scenarios/two_paths.toml in ns-3, stepped from outside, for gym_speed.py --ns3.
//
// ns-3 has no MPTCP: each path has a TCP flow of its own, which moves the same bytes with less work. A line on standard
// input is an action and simulates a step; a line on standard output has the bytes received on each path by then. That is
// the least that a bridge from Python to ns-3 does. Compiled with NS3_GYM and the sources of ns3-gym, it is stepped by
// ns3-gym instead, with ZeroMQ and protobuf in place of the lines. A step has 100 ms, or as many microseconds as the
// environment variable STEP says.
//
//     pip install --no-deps ns3==3.44.post0
//     W=$(python -c "import pathlib, sysconfig; print(pathlib.Path(sysconfig.get_paths()['purelib'], 'ns3'))")
//     g++ -O2 -std=c++20 -I$W/include python/examples/ns3_two_paths.cc -o ns3_two_paths -L$W/lib64 -Wl,-rpath,$W/lib64 \
//         -Wl,--allow-shlib-undefined -lns3.44-applications -lns3.44-point-to-point -lns3.44-internet -lns3.44-traffic-control \
//         -lns3.44-network -lns3.44-core

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#ifdef NS3_GYM
#include "container.h"
#include "opengym_env.h"
#include "opengym_interface.h"
#include "spaces.h"
#endif

#include <cstdlib>
#include <iostream>
#include <string>

using namespace ns3;

static Time
StepTime()
{
    const char* microseconds = std::getenv("STEP");
    return MicroSeconds(microseconds ? std::stoul(microseconds) : 100'000);
}

struct Path
{
    const char* rate;
    const char* delay;
    const char* network;
    uint16_t port;
};

static Ptr<PacketSink>
Connect(NodeContainer nodes, const Path& path)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(path.rate));
    link.SetChannelAttribute("Delay", StringValue(path.delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100p"));
    NetDeviceContainer devices = link.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase(path.network, "255.255.255.0");
    Address server = InetSocketAddress(addresses.Assign(devices).GetAddress(1), path.port);

    BulkSendHelper sender("ns3::TcpSocketFactory", server);
    sender.SetAttribute("MaxBytes", UintegerValue(0));
    sender.Install(nodes.Get(0)).Start(Seconds(0));
    PacketSinkHelper sink("ns3::TcpSocketFactory", server);
    ApplicationContainer receiver = sink.Install(nodes.Get(1));
    receiver.Start(Seconds(0));
    return DynamicCast<PacketSink>(receiver.Get(0));
}

#ifdef NS3_GYM
/// Two numbers of an action, which change nothing, and the bytes received on each path.
class TwoPaths : public OpenGymEnv
{
  public:
    TwoPaths(Ptr<PacketSink> fast, Ptr<PacketSink> slow)
        : m_sinks{fast, slow}
    {
    }

    Ptr<OpenGymSpace> GetActionSpace() override
    {
        return CreateObject<OpenGymBoxSpace>(0.0F, 1.0F, std::vector<uint32_t>{2}, "float");
    }

    Ptr<OpenGymSpace> GetObservationSpace() override
    {
        return CreateObject<OpenGymBoxSpace>(0.0F, 1e9F, std::vector<uint32_t>{2}, "float");
    }

    Ptr<OpenGymDataContainer> GetObservation() override
    {
        auto values = CreateObject<OpenGymBoxContainer<float>>(std::vector<uint32_t>{2});
        for (const auto& sink : m_sinks)
        {
            values->AddValue(static_cast<float>(sink->GetTotalRx()));
        }
        return values;
    }

    bool GetGameOver() override
    {
        return false;
    }

    float GetReward() override
    {
        return 0;
    }

    std::string GetExtraInfo() override
    {
        return "";
    }

    bool ExecuteActions(Ptr<OpenGymDataContainer>) override
    {
        return true;
    }

    /// The end of a step, and of those that follow.
    void Step()
    {
        Simulator::Schedule(StepTime(), &TwoPaths::Step, this);
        Notify();
    }

  private:
    Ptr<PacketSink> m_sinks[2];
};

/// Steps by ns3-gym, which listens at this port, for 30 s.
static void
RunGym(uint32_t port, Ptr<PacketSink> fast, Ptr<PacketSink> slow)
{
    auto environment = CreateObject<TwoPaths>(fast, slow);
    environment->SetOpenGymInterface(CreateObject<OpenGymInterface>(port));
    Simulator::Schedule(MilliSeconds(0), &TwoPaths::Step, environment);
    Simulator::Stop(Seconds(30));
    Simulator::Run();
    environment->NotifySimulationEnd();
}
#endif

int
main(int count, char** arguments)
{
    bool events = count > 1 && std::string(arguments[1]) == "--events";
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1400));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    NodeContainer nodes;
    nodes.Create(2);
    InternetStackHelper().Install(nodes);
    auto fast = Connect(nodes, {"10Mbps", "10ms", "10.1.1.0", 5001});
    auto slow = Connect(nodes, {"5Mbps", "40ms", "10.1.2.0", 5002});

#ifdef NS3_GYM
    if (count > 1)
    {
        RunGym(std::stoul(arguments[1]), fast, slow);
        Simulator::Destroy();
        return 0;
    }
#endif
    std::string action;
    while (std::getline(std::cin, action))
    {
        Simulator::Stop(StepTime());
        Simulator::Run();
        std::cout << fast->GetTotalRx() << ' ' << slow->GetTotalRx() << std::endl;
    }
    if (events)
    {
        std::cerr << Simulator::GetEventCount() << " events\n";
    }
    Simulator::Destroy();
    return 0;
}
